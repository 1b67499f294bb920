// The current query: selected systems, filters and sort order.

const PER_PAGE = 50;
const ALL = -1;
const NONE = -2;

const state = { page: 0, found: [], open: new Set(), terms: [], filters: 0 };
const selected = (id) => Number($(id).value);
const column = () => data.columns[selected("metric")];
const isPaired = () => selected("left") >= 0 && selected("right") >= 0;

const SORT_KEYS = {
  number: ([left]) => left,
  left: ([left]) => score(column(), left),
  right: ([, right]) => score(column(), right),
  difference: (unit) => difference(unit),
  gap: (unit) => Math.abs(difference(unit)),
  length: ([left]) => rows.lengths[left],
  metricDisagreement: (unit) => largestDisagreement(data.metricDisagreement, unit),
  humanDisagreement: (unit) => Math.abs(largestDisagreement(data.humanDisagreement, unit)),
  human: ([left]) => human(left),
};
const OPTIONAL_KEYS = ["metricDisagreement", "humanDisagreement", "human"]; // rows without a value are hidden
function difference([left, right]) {
  // above 0: the first is better; integers avoid rounding errors
  const { values, decimals, higherIsBetter } = column(),
    [a, b] = [left, right].map((row) => values[row] ?? NaN);
  return (higherIsBetter ? a - b : b - a) / 10 ** decimals;
}
function candidates() {
  const left = selected("left"),
    right = selected("right"),
    units = [];
  if (isPaired()) {
    for (let item = 0; item < data.items.length; item++) {
      const pair = [rowOf(item, left), rowOf(item, right)];
      if (pair[0] >= 0 && pair[1] >= 0) units.push(pair);
    }
    return units;
  }
  for (let row = 0; row < rows.text.length; row++)
    if (left < 0 || data.systemIndices[row] === left) units.push([row, -1]);
  return units;
}
// Search ignores case, accents, the dots of i, and vowel points of Hebrew and Arabic. Marks that are
// letters, as in Hindi, Thai or Japanese, count.
const POINTS = /[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u064b-\u0652\u0670]/g;
function foldText(text) {
  if (/^[\0-\x7f]*$/.test(text)) return text.toLowerCase();
  const plain = text.normalize("NFD").replace(POINTS, "").toLowerCase();
  return plain.replace(/ı/g, "i").replace(/ς/g, "σ").normalize("NFC");
}
function parseTerms() {
  // words, and quoted phrases
  const found = $("query").value.matchAll(/["“”„]([^"“”„]*)["“”„]?|[^\s"“”„]+/g);
  return Array.from(found, (hit) => foldText((hit[1] ?? hit[0]).trim())).filter(Boolean);
}
function matchesTerm([left, right], term) {
  rows.folded ||= rows.text.map(foldText);
  data.folded ||= data.items.map((item) => foldText([item[0], item[2], ...item[3]].join("\n")));
  return (
    data.folded[rows.item[left]].includes(term) ||
    rows.folded[left].includes(term) ||
    (right >= 0 && rows.folded[right].includes(term))
  );
}
function activeFilters() {
  // one predicate per active filter
  const tests = [],
    gap = parseFloat($("min-gap").value),
    minLength = parseFloat($("min-length").value),
    maxLength = parseFloat($("max-length").value);
  if (gap > 0 && isPaired()) tests.push((unit) => Math.abs(difference(unit)) >= gap);
  if (minLength > 0) tests.push(([left]) => rows.lengths[left] >= minLength);
  if (!Number.isNaN(maxLength)) tests.push(([left]) => rows.lengths[left] <= maxLength);
  const warning = selected("warning");
  const hasWarning = (row) =>
    row >= 0 && (warning === ALL ? data.warningBits[row] > 0 : hasWarningKind(row, warning));
  if (warning !== NONE) tests.push(([left, right]) => hasWarning(left) || hasWarning(right));
  if (selected("document") >= 0)
    tests.push(([left]) => data.items[rows.item[left]][1] === selected("document"));
  if ($("explained-only").checked) tests.push((unit) => explanations(unit).length > 0);
  return tests;
}
function explanations([left, right]) {
  const systems = [data.systemIndices[left], right < 0 ? -1 : data.systemIndices[right]];
  return (data.explanationsByItem.get(rows.item[left]) || []).filter((entry) =>
    systems.includes(entry[1]),
  );
}
function runQuery() {
  updateControls();
  state.terms = parseTerms();
  const filters = activeFilters(),
    tests = [...state.terms.map((term) => (unit) => matchesTerm(unit, term)), ...filters],
    key = SORT_KEYS[$("sort").value],
    descending = $("order").value === "down";
  const found = candidates().filter((unit) => tests.every((test) => test(unit)));
  let keyed = found.map((unit) => [key(unit), unit]);
  if (OPTIONAL_KEYS.includes($("sort").value)) keyed = keyed.filter((entry) => !Number.isNaN(entry[0]));
  keyed.sort((a, b) => compareKeys(a[0], b[0], descending) || a[1][0] - b[1][0]);
  state.found = keyed.map((entry) => entry[1]);
  state.page = 0;
  state.open.clear();
  showFilterCount(filters.length);
  showNotice("");
  render();
}
function showFilterCount(count) {
  $("more-title").textContent = count ? `More filters (${count} active)` : "More filters";
  if (count > state.filters) $("more").open = true;
  state.filters = count;
  $("clear").hidden = !isFiltered();
}
const isFiltered = () => state.filters > 0 || state.terms.length > 0;
function updateControls() {
  // disable options that need a second system or human scores
  for (const choice of $("right").options) choice.disabled = choice.value === $("left").value;
  if ($("right").selectedOptions[0].disabled) $("right").value = NONE;
  const pair = isPaired();
  for (const choice of $("sort").options) {
    if (["right", "difference", "gap"].includes(choice.value)) choice.disabled = !pair;
    if (["humanDisagreement", "human"].includes(choice.value)) choice.disabled = !data.human;
    if (choice.value === "metricDisagreement") choice.disabled = data.columns.length < 2;
  }
  if ($("sort").selectedOptions[0].disabled) sortOn("number", "up");
  $("min-gap").disabled = !pair;
  $("right").disabled = selected("left") === ALL;
}
