// Questions, links and pages; and the start, after the first paint.

const most = (values) => {
  let best = 0;
  values.forEach((value, n) => {
    if (value > values[best] || Number.isNaN(values[best])) best = n;
  });
  return best;
};
function clear() {
  for (const id of ["query", "gap", "shortest", "longest"]) $(id).value = "";
  $("warning").value = NONE;
  $("document").value = ALL;
  $("only").checked = false;
}
function clearAll() {
  clear();
  press("");
  find();
  $("query").focus();
}
const say = (text) => {
  $("notice").textContent = text;
};
const ANSWERS = {
  metrics: () => {
    everySystem();
    sortOn("spread");
  },
  people: () => {
    everySystem();
    sortOn("misfit");
  },
  systems: () => {
    if (!paired()) twoSystems();
    sortOn("apart");
  },
  warned: () => {
    everySystem();
    sortOn("number", "up");
    $("warning").value = ALL;
  },
  explained: () => {
    everySystem();
    sortOn("number", "up");
    $("only").checked = true;
  },
  all: () => sortOn("number", "up"),
};
function everySystem() {
  $("left").value = ALL;
  $("right").value = NONE;
}
function twoSystems() {
  // the best and the worst by mean rank of the chosen metric
  const means = data.systems.map((_, system) => {
    const own = data.systemOf.flatMap((s, row) =>
      s === system && column().values[row] !== null ? [column().values[row]] : [],
    );
    return (
      ((column().up ? 1 : -1) * own.reduce((sum, value) => sum + value, 0)) /
      Math.max(own.length, 1)
    );
  });
  const counts = data.systems.map((_, system) =>
    data.systemOf.reduce((n, s) => n + (s === system), 0),
  );
  const enough = Math.max(...counts) / 2;
  means.forEach((_, system) => {
    if (counts[system] < enough) means[system] = NaN;
  });
  const best = most(means),
    worst = most(means.map((value) => -value));
  $("left").value = best;
  $("right").value = best === worst ? (best + 1) % data.systems.length : worst;
}
function sortOn(key, order = "down") {
  $("sort").value = key;
  $("order").value = order;
}
function ask(name) {
  clear();
  ANSWERS[name]();
  press(name);
  find();
}
function press(name) {
  for (const button of document.querySelectorAll("[data-ask]"))
    button.setAttribute("aria-pressed", String(button.dataset.ask === name));
}
function show(row) {
  // one translation among all, unfolded
  clear();
  everySystem();
  sortOn("number", "up");
  press("");
  find();
  const place = state.found.findIndex((unit) => unit[0] === row);
  if (place < 0) return;
  state.page = Math.floor(place / PER_PAGE);
  state.open.add(place);
  render();
  const body = $(`unit-${place}`);
  body.scrollIntoView({ block: "center" });
  body.querySelector(".unfold").focus({ preventScroll: true });
}
function itemOf(name) {
  // by its label, else by its number
  const item = data.items.findIndex((entry) => entry[0] === name);
  return item < 0 && /^\d+$/.test(name) && name <= data.items.length ? name - 1 : item;
}
function follow() {
  const found = /^#segment-(.+)$/.exec(location.hash);
  if (!found) return;
  const name = decoded(found[1]),
    item = itemOf(name);
  if (item >= 0) {
    show(rows.start[item]);
    return;
  }
  say(`There is no segment ${name} on this page.`);
  $("notice").scrollIntoView({ block: "center" });
}
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
function turn(page) {
  state.page = page;
  render();
  $("results").scrollIntoView({ block: "start" });
  $("results").focus({ preventScroll: true });
}

function fill() {
  const several = data.systems.length > 1;
  $("left").append(option(ALL, "all systems"), ...data.systems.map((name, n) => option(n, name)));
  $("right").append(option(NONE, "nothing"), ...data.systems.map((name, n) => option(n, name)));
  $("metric").append(...data.columns.map((metric, n) => option(n, metric.name)));
  $("warning").append(
    option(NONE, "whatever"),
    option(ALL, "any warning"),
    ...data.warnings.map((kind, n) => option(n, kind)),
  );
  $("document").append(
    option(ALL, "all documents"),
    ...data.documents.flatMap((name, n) => (name ? [option(n, name)] : [])),
  );
  $("document").disabled = !data.documents.some(Boolean);
  $("warning").disabled = !data.warnings.length;
  $("only").disabled = !data.explained.length;
  if (several && data.columns.length) twoSystems();
  else everySystem();
  if (candidates().length * 2 < data.items.length) everySystem();
  for (const button of document.querySelectorAll("[data-ask]")) prepare(button);
}
function missing(question) {
  // what a question would need, or nothing
  const reasons = {
    people: !data.human && "needs human scores: --human FILE",
    metrics: data.columns.length < 2 && "needs two metrics: -m chrf ter",
    systems: data.systems.length < 2 && "needs two systems: -t FILE FILE",
    warned: !data.warnings.length && "no translation has a warning",
    explained: !data.explained.length && "no explanations: use a metric that explains (bertscore)",
  };
  return reasons[question] || "";
}
function prepare(button) {
  const question = button.dataset.ask,
    reason = missing(question);
  button.setAttribute("aria-pressed", "false");
  button.addEventListener("click", () =>
    reason ? say(`“${button.textContent}”: ${reason}`) : ask(question),
  );
  if (!reason) return;
  button.setAttribute("aria-disabled", "true");
  button.title = reason;
  button.setAttribute("aria-describedby", `needs-${question}`);
  button.after(make("span", { class: "hidden", id: `needs-${question}` }, reason));
}
function listen() {
  let waiting = 0;
  $("query").addEventListener("input", () => {
    clearTimeout(waiting);
    press("");
    waiting = setTimeout(find, 120);
  });
  $("controls").addEventListener("change", (event) => {
    if (event.target.id === "query") return;
    if (event.target.id === "marks") {
      render();
      return;
    }
    press("");
    find();
  });
  $("controls").addEventListener("submit", (event) => {
    event.preventDefault();
    find();
  });
  $("previous").addEventListener("click", () => turn(state.page - 1));
  $("next").addEventListener("click", () => turn(state.page + 1));
  $("page").addEventListener("change", () => turn(Math.trunc($("page").value || 1) - 1));
  $("clear").addEventListener("click", clearAll);
  window.addEventListener("resize", reachable);
  document.addEventListener("click", (event) => {
    const dot = event.target.closest("[data-row]");
    if (!dot) return;
    event.preventDefault();
    show(Number(dot.dataset.row));
  });
  window.addEventListener("hashchange", follow);
}
async function start() {
  if (typeof DecompressionStream === "undefined") {
    $("loading").textContent = "This browser cannot unpack the segments; one of 2023 or later can.";
    return;
  }
  await unpack();
  if (!data.items.length) {
    $("loading").textContent =
      "This report is about whole systems: there are no segments to look at.";
    document.documentElement.dataset.ready = "1";
    return;
  }
  fill();
  sortOn("number", "up");
  listen();
  $("loading").remove();
  $("browser").hidden = false;
  find();
  follow();
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}
// After the first paint: the overview is there at once, however many segments follow.
requestAnimationFrame(() => setTimeout(start, 0));
