// The manager's page: progress of all raters, export, and actions on the campaign.

import { fetchJson, request, token } from "/static/server.js";

const REFRESH_MS = 10000;

const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
const cell = (contents, kind = "") => make("td", { class: kind || null }, contents);

function ago(seconds) {
  if (seconds === null) return "not started";
  if (seconds < 90) return `${seconds} s ago`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min ago` : `${Math.round(seconds / 3600)} h ago`;
}

function raterRow(row) {
  const { passed, failed } = row.checks;
  const checks = passed + failed ? `${passed} passed, ${failed} failed` : "–";
  const last = row.is_on_break ? "on a break" : ago(row.idle_seconds);
  return make("tr", {}, make("th", { scope: "row" }, named(row.rater)), cell(`${row.done} / ${row.tasks}`, "number"),
    cell(String(row.skipped), "number"), cell(row.seconds === null ? "–" : String(row.seconds), "number"), cell(last),
    cell(checks, failed ? "bad" : ""), cell(row.agreement === null ? "–" : row.agreement.toFixed(2), "number"),
    cell(row.suspicions.join("; ") || "–", row.suspicions.length ? "bad" : ""));
}

function show(progress) {
  $("name").textContent = progress.name;
  document.title = progress.name;
  const tasks = progress.raters.reduce((sum, row) => sum + row.tasks, 0);
  const done = progress.raters.reduce((sum, row) => sum + row.done + row.skipped, 0);
  const agreement = progress.alpha === null ? "" : ` · Krippendorff's alpha ${progress.alpha.toFixed(2)}`;
  $("progress").value = tasks ? done / tasks : 0;
  $("progress-text").textContent = `${progress.protocol} · ${done} of ${tasks} done${agreement}`;
  $("raters").tBodies[0].replaceChildren(...progress.raters.map(raterRow));
  $("stop").textContent = progress.is_stopped ? "Reopen" : "Stop";
  $("stop").dataset.kind = progress.is_stopped ? "reopen" : "stop";
  const chosen = $("extend-rater").value;
  $("extend-rater").replaceChildren(...progress.raters.map((row) => option(row.rater, row.rater)));
  if (chosen) $("extend-rater").value = chosen;
  const state = progress.is_stopped ? "Stopped: raters see that the campaign is closed" : "Running";
  $("saved").textContent = state;
  $("saved").className = progress.is_stopped ? "waiting" : "ok";
}

function showProblem(problem) {
  $("saved").textContent = problem.kind === "offline" ? "The server does not answer" : problem.message;
  $("saved").className = "error";
}

async function load() {
  try {
    show(await fetchJson("/api/progress"));
  } catch (problem) {
    showProblem(problem);
  }
  document.documentElement.dataset.ready = "true";
}

async function act(kind, more = {}) {
  try {
    show(await fetchJson("/api/manage", { id: newId(), kind, ...more }));
  } catch (problem) {
    showProblem(problem);
  }
}

function confirmThen(question, label, action) {
  const dialog = $("dialog");
  dialog.setAttribute("aria-label", question);
  const close = make("button", { type: "button", on: () => dialog.close() }, "Cancel");
  const go = make("button", { type: "button", class: "primary", on: () => (dialog.close(), action()) }, label);
  dialog.replaceChildren(make("p", {}, question), make("p", { class: "buttons" }, close, go));
  dialog.showModal();
}

async function download() {
  try {
    const response = await request("/api/export");
    const address = URL.createObjectURL(await response.blob());
    const link = make("a", { href: address, download: "judgments.jsonl" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  } catch (problem) {
    showProblem(problem);
  }
}

function showTheme() {
  $("theme").textContent = `Theme: ${theme}`;
}

$("export").addEventListener("click", download);
$("stop").addEventListener("click", () => {
  if ($("stop").dataset.kind === "reopen") act("reopen");
  else confirmThen("Stop the campaign? Raters see that it is closed. It can be reopened.", "Stop", () => act("stop"));
});
$("extend").addEventListener("submit", (event) => {
  event.preventDefault();
  act("extend", { rater: $("extend-rater").value, count: Number($("extend-count").value) });
});
$("theme").addEventListener("click", () => {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  storedTheme(theme);
  setTheme(theme);
  showTheme();
});
window.addEventListener("hashchange", () => location.reload());
showTheme();
if (token) {
  load();
  setInterval(() => document.hidden || $("dialog").open || load(), REFRESH_MS);
} else {
  showProblem({ message: "The link is incomplete: the part after # is missing. Open the whole link." });
  document.documentElement.dataset.ready = "error";
}
