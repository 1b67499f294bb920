// What is asked for: which translations, alone or in pairs, filtered how and sorted by what.

const PER_PAGE = 50;
const ALL = -1;
const NONE = -2;

const state = { page: 0, found: [], open: new Set(), terms: [], filters: 0 };
const chosen = (id) => Number($(id).value);
const column = () => data.columns[chosen("metric")];
const paired = () => chosen("left") >= 0 && chosen("right") >= 0;

const KEYS = {
  number: ([left]) => left,
  left: ([left]) => score(column(), left),
  right: ([, right]) => score(column(), right),
  difference: (unit) => difference(unit),
  apart: (unit) => Math.abs(difference(unit)),
  length: ([left]) => rows.lengths[left],
  spread: (unit) => farthest(data.spread, unit),
  misfit: (unit) => Math.abs(farthest(data.misfit, unit)),
  human: ([left]) => human(left),
};
const PARTIAL = ["spread", "misfit", "human"]; // what has none of these is not an answer
function difference([left, right]) {
  // above 0: the first is better; of whole numbers, for .3 - .2 is less than .1
  const { values, decimals, up } = column(),
    [a, b] = [left, right].map((row) => values[row] ?? NaN);
  return (up ? a - b : b - a) / 10 ** decimals;
}
function candidates() {
  const left = chosen("left"),
    right = chosen("right"),
    units = [];
  if (paired()) {
    for (let item = 0; item < data.items.length; item++) {
      const pair = [rowOf(item, left), rowOf(item, right)];
      if (pair[0] >= 0 && pair[1] >= 0) units.push(pair);
    }
    return units;
  }
  for (let row = 0; row < rows.text.length; row++)
    if (left < 0 || data.systemOf[row] === left) units.push([row, -1]);
  return units;
}
// Capitals, accents and the dots of i make no difference to a search, nor do the vowel points of
// Hebrew and Arabic. Marks that are letters, as in Hindi, Thai or Japanese, do.
const POINTS = /[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u064b-\u0652\u0670]/g;
function folded(text) {
  if (/^[\0-\x7f]*$/.test(text)) return text.toLowerCase();
  const plain = text.normalize("NFD").replace(POINTS, "").toLowerCase();
  return plain.replace(/ı/g, "i").replace(/ς/g, "σ").normalize("NFC");
}
function terms() {
  // words, and what stands in quotes as one
  const found = $("query").value.matchAll(/["“”„]([^"“”„]*)["“”„]?|[^\s"“”„]+/g);
  return Array.from(found, (hit) => folded((hit[1] ?? hit[0]).trim())).filter(Boolean);
}
function holds([left, right], term) {
  rows.folded ||= rows.text.map(folded);
  data.folded ||= data.items.map((item) => folded([item[0], item[2], ...item[3]].join("\n")));
  return (
    data.folded[rows.item[left]].includes(term) ||
    rows.folded[left].includes(term) ||
    (right >= 0 && rows.folded[right].includes(term))
  );
}
function filters() {
  // a test for each that is set
  const tests = [],
    gap = parseFloat($("gap").value),
    short = parseFloat($("shortest").value),
    long = parseFloat($("longest").value);
  if (gap > 0 && paired()) tests.push((unit) => Math.abs(difference(unit)) >= gap);
  if (short > 0) tests.push(([left]) => rows.lengths[left] >= short);
  if (!Number.isNaN(long)) tests.push(([left]) => rows.lengths[left] <= long);
  const warning = chosen("warning"),
    mask = warning === ALL ? ~0 : 1 << warning;
  const warned = (row) => row >= 0 && (data.warned[row] & mask) !== 0;
  if (warning !== NONE) tests.push(([left, right]) => warned(left) || warned(right));
  if (chosen("document") >= 0)
    tests.push(([left]) => data.items[rows.item[left]][1] === chosen("document"));
  if ($("only").checked) tests.push((unit) => explanations(unit).length > 0);
  return tests;
}
function explanations([left, right]) {
  const systems = [-1, data.systemOf[left], right < 0 ? -1 : data.systemOf[right]];
  return (data.explainedBy.get(rows.item[left]) || []).filter((entry) =>
    systems.includes(entry[1]),
  );
}
function find() {
  adapt();
  state.terms = terms();
  const set = filters(),
    tests = [...state.terms.map((term) => (unit) => holds(unit, term)), ...set],
    key = KEYS[$("sort").value],
    down = $("order").value === "down";
  const found = candidates().filter((unit) => tests.every((test) => test(unit)));
  let keyed = found.map((unit) => [key(unit), unit]);
  if (PARTIAL.includes($("sort").value)) keyed = keyed.filter((entry) => !Number.isNaN(entry[0]));
  keyed.sort((a, b) => compareKeys(a[0], b[0], down) || a[1][0] - b[1][0]);
  state.found = keyed.map((entry) => entry[1]);
  state.page = 0;
  state.open.clear();
  sayFilters(set.length);
  say("");
  render();
}
function sayFilters(many) {
  // what narrows the answer is in sight, and can be taken back
  $("more-title").textContent = many ? `More filters (${many} active)` : "More filters";
  if (many > state.filters) $("more").open = true;
  state.filters = many;
  $("clear").hidden = !narrowed();
}
const narrowed = () => state.filters > 0 || state.terms.length > 0;
function adapt() {
  // what makes no sense for one system alone, or without people, cannot be chosen
  for (const choice of $("right").options) choice.disabled = choice.value === $("left").value;
  if ($("right").selectedOptions[0].disabled) $("right").value = NONE;
  const pair = paired();
  for (const choice of $("sort").options) {
    if (["right", "difference", "apart"].includes(choice.value)) choice.disabled = !pair;
    if (["misfit", "human"].includes(choice.value)) choice.disabled = !data.human;
    if (choice.value === "spread") choice.disabled = data.columns.length < 2;
  }
  if ($("sort").selectedOptions[0].disabled) sortOn("number", "up");
  $("gap").disabled = !pair;
  $("right").disabled = chosen("left") === ALL;
}
