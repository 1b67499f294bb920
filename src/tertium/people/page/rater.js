// The rater's page: shows one task after the other and records every action as an event.

import { WorkClock } from "/static/clock.js";
import { letter } from "/static/forms.js";
import { SEVERITY_KEYS } from "/static/marking.js";
import { EventQueue } from "/static/queue.js";
import { fetchJson, token } from "/static/server.js";
import { TaskView } from "/static/task.js";
import { LANGUAGES, initialLanguage, loadLanguage, translate } from "/static/translations.js";

const SKIP_REASONS = ["skipNotMyLanguage", "skipBroken", "skipUnclear", "skipOther"];

let language = initialLanguage();
const text = (key, values) => translate(language, key, values);
const copy = (value) => JSON.parse(JSON.stringify(value));

const page = {
  data: null, // what the server sent: campaign, tasks, states
  states: [],
  current: 0,
  draft: null,
  history: [], // earlier drafts of this task
  view: null,
  clock: new WorkClock(),
  queue: null,
};

function announce(message) {
  $("announcement").textContent = message;
}

function emptyDraft(task) {
  const outputs = task.outputs.map((output, n) => ({
    score: null,
    rank: null,
    marks: copy(task.suspected[n] ?? []),
    edited: null,
  }));
  return { outputs, comment: "" };
}

function isComplete(draft) {
  const protocol = page.data.campaign.protocol;
  return draft.outputs.every((output) => {
    if (protocol === "ranking") return output.rank !== null;
    if (protocol === "mqm") return output.marks.every((mark) => mark.category);
    if (protocol === "post-edit") return Boolean((output.edited ?? originalText(output)).trim());
    return output.score !== null;
  });
}

function originalText(output) {
  const number = page.draft.outputs.indexOf(output);
  return page.data.tasks[page.current].outputs[number]?.text ?? "";
}

function missingPart(draft) {
  const protocol = page.data.campaign.protocol;
  const keys = { ranking: "needRank", mqm: "needCategory", "post-edit": "needText" };
  const number = draft.outputs.findIndex((output) => !isComplete({ outputs: [output] }));
  const name = draft.outputs.length > 1 ? text("translationName", { name: letter(number) }) : text("translation");
  return text(keys[protocol] ?? "needScore", { name });
}

function send(kind, more = {}) {
  const body = { kind, ...more };
  page.queue.add(JSON.parse(JSON.stringify(body, (key, value) => (value === null ? undefined : value))));
}

function sendAnswer(kind, detail) {
  const outputs = page.draft.outputs.map((output) => ({ ...output, marks: output.marks.length ? output.marks : undefined }));
  const comment = page.draft.comment || undefined;
  send(kind, { task: page.current, outputs, comment, detail, ms: page.clock.take() });
}

function rememberState(status) {
  page.states[page.current] = { ...copy(page.draft), status, reason: "" };
  showProgress();
}

// Record a change that the view made to the draft.
function record(detail, before) {
  page.history.push(before);
  $("undo").disabled = false;
  $("problem").textContent = "";
  const wasDone = page.states[page.current]?.status === "done";
  rememberState(wasDone && isComplete(page.draft) ? "done" : "open");
  sendAnswer("change", detail);
}

function undo() {
  const earlier = page.history.pop();
  if (!earlier) return;
  page.draft = earlier;
  const wasDone = page.states[page.current]?.status === "done";
  rememberState(wasDone && isComplete(page.draft) ? "done" : "open");
  sendAnswer("change", "undo");
  page.view.update(page.draft);
  $("undo").disabled = !page.history.length;
  announce(text("undone"));
}

function submit() {
  page.view.commit();
  if (!isComplete(page.draft)) {
    $("problem").textContent = missingPart(page.draft);
    return;
  }
  if (page.data.campaign.protocol === "post-edit") {
    page.draft.outputs.forEach((output, n) => (output.edited ??= page.data.tasks[page.current].outputs[n].text));
  }
  rememberState("done");
  sendAnswer("submit", "");
  showNext();
}

function showNext() {
  const count = page.data.tasks.length;
  for (let step = 1; step <= count; step += 1) {
    const number = (page.current + step) % count;
    const status = page.states[number]?.status;
    if (status !== "done" && status !== "skipped") return open(number);
  }
  return showEnd();
}

function open(number, addToHistory = true) {
  page.view?.commit();
  if (page.view && page.draft) send("leave", { task: page.current, ms: page.clock.take() });
  page.current = number;
  const task = page.data.tasks[number];
  const state = page.states[number];
  page.draft = state?.outputs?.length ? { outputs: copy(state.outputs), comment: state.comment } : emptyDraft(task);
  page.history = [];
  page.clock.take();
  page.clock.start();
  if (addToHistory && history.state?.task !== number) {
    const method = history.state ? "pushState" : "replaceState";
    history[method]({ task: number }, "", location.href);
  }
  showTask();
  send("open", { task: number });
}

function showTask() {
  const task = page.data.tasks[page.current];
  page.view = new TaskView({ campaign: page.data.campaign, task, number: page.current, draft: page.draft, text, record, announce });
  if (page.states[page.current]?.status === "skipped") {
    page.view.element.prepend(make("p", { class: "banner" }, text("skippedBecause", { reason: page.states[page.current].reason })));
  }
  $("task").replaceChildren(page.view.element);
  $("actions").hidden = false;
  $("previous").disabled = page.current === 0;
  $("undo").disabled = !page.history.length;
  $("problem").textContent = "";
  showProgress();
  window.scrollTo(0, 0);
  page.view.heading.focus({ preventScroll: true });
}

function showMessage(title, ...contents) {
  page.view = null;
  page.clock.stop();
  $("actions").hidden = true;
  const heading = make("h2", { tabindex: "-1" }, title);
  $("task").replaceChildren(make("section", { class: "message" }, heading, ...contents));
  heading.focus();
}

function showEnd() {
  if (page.view) send("leave", { task: page.current, ms: page.clock.take() });
  const again = make("button", { type: "button", on: () => open(0) }, text("reviewAnswers"));
  showMessage(text("allDone"), make("p", {}, text("allDoneMore")), make("p", {}, again));
}

function showProgress() {
  const counted = page.states.filter((state) => state?.status === "done" || state?.status === "skipped").length;
  const total = page.data.tasks.length;
  $("progress").value = total ? counted / total : 0;
  $("progress-text").textContent = text("progress", { done: counted, total });
}

function showStatus({ waiting, error }) {
  const node = $("saved");
  node.className = error ? "error" : waiting ? "waiting" : "ok";
  if (error?.kind === "rejected") node.textContent = text("rejected", { message: error.message });
  else if (error?.kind === "disk") node.textContent = text("diskFull", { count: waiting });
  else if (error?.kind === "link") node.textContent = error.message;
  else if (error && waiting) node.textContent = text("offline", { count: waiting });
  else node.textContent = waiting ? text("saving") : text("saved");
}

function showDialog(title, contents, onClose = () => {}) {
  const dialog = $("dialog");
  const close = make("button", { type: "button", class: "primary", on: () => dialog.close() }, text("close"));
  dialog.setAttribute("aria-label", title);
  dialog.replaceChildren(make("h2", {}, title), ...contents, make("p", { class: "buttons" }, close));
  dialog.addEventListener("close", onClose, { once: true }); // is called later, maybe after a new one
  dialog.showModal();
}

function showHelp() {
  const campaign = page.data.campaign;
  const instructions = campaign.instructions || text(`instructions-${campaign.protocol}`);
  const paragraphs = instructions.split(/\n{2,}/).map((part) => make("p", { dir: "auto", class: "instructions" }, part));
  const keys = [["Ctrl + Enter", "keySubmit"], ["Ctrl + Z", "keyUndo"]];
  const severities = Object.entries(SEVERITY_KEYS).filter(([, name]) => campaign.severities.includes(name));
  const names = severities.map(([, name]) => text(name)).join(" / ");
  if (severities.length) {
    const marking = severities.map(([key]) => key).join(" / ");
    keys.unshift(["← → ↑ ↓", "keyMove"], ["Shift + ← →", "keySelect"], [marking, "keyMark"], ["Delete", "keyRemove"], ["Enter", "keyOpen"]);
  }
  const rows = keys.map(([key, name]) =>
    make("tr", {}, make("th", { scope: "row" }, make("kbd", {}, key)), make("td", {}, text(name, { names }))));
  showDialog(text("help"), [...paragraphs, make("h3", {}, text("keyboard")), make("table", {}, make("tbody", {}, ...rows))]);
}

function takeBreak() {
  send("break", page.view ? { task: page.current, ms: page.clock.take() } : {});
  page.clock.stop();
  showDialog(text("onBreak"), [make("p", {}, text("onBreakMore"))], () => {
    send("resume");
    page.clock.take();
    if (page.view) page.clock.start();
  });
}

function skip() {
  const field = make("input", { type: "text", id: "skip-more", maxlength: "500" });
  const choices = SKIP_REASONS.map((key, n) =>
    make("label", { class: "choice" }, make("input", { type: "radio", name: "reason", value: translate("en", key), checked: n === 0 }), ` ${text(key)}`));
  const confirm = make("button", { type: "button", class: "primary", on: () => {
    const chosen = document.querySelector('input[name="reason"]:checked').value;
    const reason = field.value.trim() ? `${chosen}: ${field.value.trim()}` : chosen;
    page.states[page.current] = { ...copy(page.draft), status: "skipped", reason };
    send("skip", { task: page.current, reason, ms: page.clock.take() });
    $("dialog").close();
    showNext();
  } }, text("skip"));
  showDialog(text("skipTitle"), [make("div", { role: "radiogroup", "aria-label": text("skipTitle") }, ...choices),
    make("label", { for: "skip-more" }, text("skipMore")), field, make("p", { class: "buttons" }, confirm)]);
}

// Answers of this page that the server does not have yet take precedence over its own.
function applyWaiting(states) {
  for (const [, { body }] of page.queue.entries()) {
    if (body.task === undefined) continue;
    if (body.kind === "skip") states[body.task] = { ...states[body.task], status: "skipped", reason: body.reason };
    if (body.kind !== "change" && body.kind !== "submit") continue;
    const outputs = body.outputs.map((output) => ({ score: null, rank: null, edited: null, marks: [], ...output }));
    const done = body.kind === "submit" || states[body.task]?.status === "done";
    states[body.task] = { outputs, comment: body.comment ?? "", status: done ? "done" : "open" };
  }
  return states;
}

async function refresh() {
  page.view?.commit();
  if (document.hidden || !page.data || page.queue.keys().length) return;
  try {
    const answer = await fetchJson("/api/states");
    if (page.queue.keys().length || !page.view) return;
    const known = JSON.stringify(page.states[page.current]?.outputs ?? []);
    page.states = answer.states;
    if (answer.count !== page.data.tasks.length) return location.reload();
    if (answer.is_stopped) return showStopped();
    const state = page.states[page.current];
    if (state?.outputs?.length && JSON.stringify(state.outputs) !== known) {
      page.draft = { outputs: copy(state.outputs), comment: state.comment };
      page.history = [];
      showTask();
    }
    showProgress();
  } catch {
    /* the queue shows problems of the connection */
  }
}

async function sendEvents(events) {
  const answer = await fetchJson("/api/events", { events });
  if (answer.is_stopped && page.view) {
    page.view.commit();
    showStopped();
  }
  return answer;
}

function showStopped() {
  showMessage(text("stopped"), make("p", {}, text("stoppedMore")));
}

function applyLanguage() {
  document.documentElement.lang = language;
  document.documentElement.dir = LANGUAGES[language].direction;
  for (const node of document.querySelectorAll("[data-text]")) node.textContent = text(node.dataset.text);
  $("language").setAttribute("aria-label", text("interfaceLanguage"));
  $("theme").textContent = text(`theme-${theme}`);
}

function bind() {
  $("language").replaceChildren(...Object.entries(LANGUAGES).map(([code, { name }]) => option(code, name)));
  $("language").value = language;
  $("language").addEventListener("change", async () => {
    await loadLanguage($("language").value);
    language = $("language").value;
    try {
      localStorage.setItem("tertium-language", language);
    } catch {
      /* no storage */
    }
    applyLanguage();
    page.view?.commit();
    if (page.view) showTask();
    page.queue?.report();
  });
  $("theme").addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    storedTheme(theme);
    setTheme(theme);
    applyLanguage();
  });
  $("help").addEventListener("click", showHelp);
  $("break").addEventListener("click", takeBreak);
  $("previous").addEventListener("click", () => open(page.current - 1));
  $("undo").addEventListener("click", undo);
  $("skip-task").addEventListener("click", skip);
  $("submit").addEventListener("click", submit);
  document.addEventListener("selectionchange", () => page.view?.readSelection());
  document.addEventListener("keydown", (event) => {
    if (!page.view || $("dialog").open || !(event.ctrlKey || event.metaKey)) return;
    const isField = event.target.matches?.("textarea, input[type=text]");
    if (event.key === "Enter") {
      event.preventDefault();
      submit();
    } else if (event.key.toLowerCase() === "z" && !isField) {
      event.preventDefault();
      undo();
    }
  });
  window.addEventListener("popstate", (event) => {
    if (event.state?.task !== undefined && page.data) open(event.state.task, false);
  });
  window.addEventListener("hashchange", () => location.reload());
  window.addEventListener("pagehide", () => {
    page.view?.commit();
    const ms = page.view ? page.clock.take() : 0;
    if (ms) send("leave", { task: page.current, ms });
  });
  document.addEventListener("visibilitychange", refresh);
  window.addEventListener("focus", refresh);
}

async function start() {
  await Promise.all([loadLanguage("en"), loadLanguage(language)]);
  applyLanguage();
  bind();
  if (!token) {
    showMessage(text("cannotStart"), make("p", { role: "alert" }, text("noToken")));
    document.documentElement.dataset.ready = "error";
    return;
  }
  try {
    page.data = await fetchJson("/api/tasks");
  } catch (problem) {
    showMessage(text("cannotStart"), make("p", { role: "alert" }, problem.kind === "offline" ? text("noServer") : problem.message));
    document.documentElement.dataset.ready = "error";
    return;
  }
  const { campaign, rater } = page.data;
  $("name").textContent = campaign.name;
  document.title = campaign.name;
  const prefix = `tertium/${campaign.id}/${rater}/`;
  page.queue = new EventQueue(prefix, sendEvents, showStatus);
  page.states = applyWaiting(page.data.states);
  page.queue.report();
  page.queue.flush();
  const remembered = history.state?.task;
  if (page.data.is_stopped) showStopped();
  else if (!page.data.tasks.length) showMessage(text("noTasks"));
  else if (remembered !== undefined && remembered < page.data.tasks.length) open(remembered);
  else {
    page.current = page.data.tasks.length - 1;
    showNext();
    if (!page.states.some(Boolean)) showHelp();
  }
  document.documentElement.dataset.ready = "true";
}


start();
