// Presets, links, pagination and initialization.

const indexOfMax = (values) => {
  let best = 0;
  values.forEach((value, n) => {
    if (value > values[best] || Number.isNaN(values[best])) best = n;
  });
  return best;
};
function clearFilters() {
  for (const id of ["query", "min-gap", "min-length", "max-length"]) $(id).value = "";
  $("warning").value = NONE;
  $("document").value = ALL;
  $("explained-only").checked = false;
}
function clearAllFilters() {
  clearFilters();
  setActivePreset("");
  runQuery();
  $("query").focus();
}
const showNotice = (text) => {
  $("notice").textContent = text;
};
const PRESETS = {
  metrics: () => {
    selectAllSystems();
    sortOn("metricDisagreement");
  },
  human: () => {
    selectAllSystems();
    sortOn("humanDisagreement");
  },
  systems: () => {
    if (!isPaired()) selectTwoSystems();
    sortOn("gap");
  },
  warnings: () => {
    selectAllSystems();
    sortOn("number", "up");
    $("warning").value = ALL;
  },
  explanations: () => {
    selectAllSystems();
    sortOn("number", "up");
    $("explained-only").checked = true;
  },
  all: () => sortOn("number", "up"),
};
function selectAllSystems() {
  $("left").value = ALL;
  $("right").value = NONE;
}
function selectTwoSystems() {
  // the best and the worst by mean score of the selected metric, if they have enough scores
  const { values, higherIsBetter } = column();
  const sums = data.systems.map(() => 0),
    counts = data.systems.map(() => 0);
  data.systemIndices.forEach((system, row) => {
    if (values[row] === null) return;
    sums[system] += higherIsBetter ? values[row] : -values[row];
    counts[system]++;
  });
  const enough = Math.max(...counts) / 2;
  const means = sums.map((sum, n) => (counts[n] < enough ? NaN : sum / Math.max(counts[n], 1)));
  const best = indexOfMax(means),
    worst = indexOfMax(means.map((value) => -value));
  $("left").value = best;
  $("right").value = best === worst ? (best + 1) % data.systems.length : worst;
}
function sortOn(key, order = "down") {
  $("sort").value = key;
  $("order").value = order;
}
function applyPreset(name) {
  clearFilters();
  PRESETS[name]();
  setActivePreset(name);
  runQuery();
}
function setActivePreset(name) {
  for (const button of document.querySelectorAll("[data-preset]"))
    button.setAttribute("aria-pressed", String(button.dataset.preset === name));
}
function showTranslation(row) {
  // show one translation among all, with details
  clearFilters();
  selectAllSystems();
  sortOn("number", "up");
  setActivePreset("");
  runQuery();
  const place = state.found.findIndex((unit) => unit[0] === row);
  if (place < 0) return;
  state.page = Math.floor(place / PER_PAGE);
  state.open.add(place);
  render();
  const body = $(`unit-${place}`);
  body.scrollIntoView({ block: "center" });
  body.querySelector(".expand").focus({ preventScroll: true });
}
function itemOf(name) {
  // by label, else by number
  const item = data.items.findIndex((entry) => entry[0] === name);
  return item < 0 && /^\d+$/.test(name) && name <= data.items.length ? name - 1 : item;
}
function followLink() {
  const found = /^#segment-(.+)$/.exec(location.hash);
  if (!found) return;
  const name = decodeUri(found[1]),
    item = itemOf(name);
  if (item >= 0) {
    showTranslation(rows.start[item]);
    return;
  }
  showNotice(`This page has no segment ${name}.`);
  $("notice").scrollIntoView({ block: "center" });
}
function decodeUri(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
function goToPage(page) {
  state.page = page;
  render();
  $("results").scrollIntoView({ block: "start" });
  $("results").focus({ preventScroll: true });
}

function fillControls() {
  const several = data.systems.length > 1;
  $("left").append(option(ALL, "all systems"), ...data.systems.map((name, n) => option(n, name)));
  $("right").append(option(NONE, "none"), ...data.systems.map((name, n) => option(n, name)));
  $("metric").append(...data.columns.map((metric, n) => option(n, metric.name)));
  $("warning").append(
    option(NONE, "any or none"),
    option(ALL, "any warning"),
    ...data.warnings.map((kind, n) => option(n, kind)),
  );
  $("document").append(
    option(ALL, "all documents"),
    ...data.documents.flatMap((name, n) => (name ? [option(n, name)] : [])),
  );
  $("document").disabled = !data.documents.some(Boolean);
  $("warning").disabled = !data.warnings.length;
  $("explained-only").disabled = !data.explanations.length;
  if (several && data.columns.length) selectTwoSystems();
  else selectAllSystems();
  if (candidates().length * 2 < data.items.length) selectAllSystems();
  for (const button of document.querySelectorAll("[data-preset]")) initPreset(button);
}
function missingData(name) {
  // what a preset needs, or an empty string
  const reasons = {
    human: !data.human && "needs human scores: --human FILE",
    metrics: data.columns.length < 2 && "needs two metrics: -m chrf ter",
    systems: data.systems.length < 2 && "needs two systems: -t FILE FILE",
    warnings: !data.warnings.length && "no translation has a warning",
    explanations:
      !data.explanations.length && "no explanations: use a metric with explanations, such as bertscore",
  };
  return reasons[name] || "";
}
function initPreset(button) {
  const name = button.dataset.preset,
    reason = missingData(name);
  button.setAttribute("aria-pressed", "false");
  button.addEventListener("click", () =>
    reason ? showNotice(`“${button.textContent}”: ${reason}`) : applyPreset(name),
  );
  if (!reason) return;
  button.setAttribute("aria-disabled", "true");
  button.title = reason;
  button.setAttribute("aria-describedby", `needs-${name}`);
  button.after(make("span", { class: "hidden", id: `needs-${name}` }, reason));
}
function addListeners() {
  let waiting = 0;
  $("query").addEventListener("input", () => {
    clearTimeout(waiting);
    setActivePreset("");
    waiting = setTimeout(runQuery, 120);
  });
  $("controls").addEventListener("change", (event) => {
    if (event.target.id === "query") return;
    if (event.target.id === "show-differences") {
      render();
      return;
    }
    setActivePreset("");
    runQuery();
  });
  $("controls").addEventListener("submit", (event) => {
    event.preventDefault();
    runQuery();
  });
  $("previous").addEventListener("click", () => goToPage(state.page - 1));
  $("next").addEventListener("click", () => goToPage(state.page + 1));
  $("page").addEventListener("change", () => goToPage(Math.trunc($("page").value || 1) - 1));
  $("clear").addEventListener("click", clearAllFilters);
  document.addEventListener("click", (event) => {
    const dot = event.target.closest("[data-row]");
    if (!dot) return;
    event.preventDefault();
    showTranslation(Number(dot.dataset.row));
  });
  window.addEventListener("hashchange", followLink);
}
async function start() {
  if (typeof DecompressionStream === "undefined") {
    $("loading").textContent = "This browser is too old to show the segments: use a version from 2023 or later.";
    return;
  }
  await decodeData();
  if (!data.items.length) {
    $("loading").textContent =
      "This report has system-level results only: there are no segments to show.";
    document.documentElement.dataset.ready = "1";
    return;
  }
  fillControls();
  sortOn("number", "up");
  addListeners();
  $("loading").remove();
  $("browser").hidden = false;
  runQuery();
  followLink();
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}
// Start after the first paint, so that the overview is visible at once.
requestAnimationFrame(() => setTimeout(start, 0));
