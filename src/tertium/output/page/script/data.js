// Decode the segment data: items with their texts, rows of scores, explanations.

let data = null,
  rows = null;
async function decodeData() {
  const encoded = atob($("data").textContent);
  const bytes = new Uint8Array(encoded.length);
  for (let n = 0; n < encoded.length; n++) bytes[n] = encoded.charCodeAt(n);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  data = JSON.parse(await new Response(stream).text());
  rows = { item: [], text: [], start: [], lengths: null };
  data.items.forEach((item, n) => {
    rows.start.push(rows.text.length);
    for (const text of item[4]) {
      rows.item.push(n);
      rows.text.push(text);
    }
  });
  rows.start.push(rows.text.length);
  rows.lengths = Int32Array.from(rows.text, lengthOf);
  data.explanationsByItem = new Map();
  for (const entry of data.explanations) {
    if (!data.explanationsByItem.has(entry[0])) data.explanationsByItem.set(entry[0], []);
    data.explanationsByItem.get(entry[0]).push(entry);
  }
}
function lengthOf(text) {
  // in words, or in code points for scripts without spaces
  if (data.unit === "word") return text.match(/\S+/g)?.length ?? 0;
  let count = 0;
  for (const _ of text) count++;
  return count;
}
function rowOf(item, system) {
  for (let row = rows.start[item]; row < rows.start[item + 1]; row++)
    if (data.systemIndices[row] === system) return row;
  return -1;
}
// Division instead of shifts, which work on 32 bits only.
const hasWarningKind = (row, kind) => Math.floor(data.warningBits[row] / 2 ** kind) % 2 === 1;
const unscale = (value, decimals) =>
  value === null || value === undefined ? NaN : value / 10 ** decimals;
const score = (column, row) => (row < 0 ? NaN : unscale(column.values[row], column.decimals));
const human = (row) =>
  row < 0 || !data.human ? NaN : unscale(data.human.values[row], data.human.decimals);
function formatNumber(value, decimals) {
  if (Number.isNaN(value)) return "–";
  const text = Math.abs(value).toFixed(decimals);
  return value < 0 && Number(text) !== 0 ? `−${text}` : text;
}
const rankShare = (values, row) => (row < 0 || values[row] === null ? NaN : values[row] / 1000);
function largestDisagreement(values, [left, right]) {
  // the larger absolute value of two rows, with its sign
  const [a, b] = [rankShare(values, left), rankShare(values, right)];
  return Number.isNaN(a) || Math.abs(b) > Math.abs(a) ? b : a;
}
function ranks(column) {
  // from 0 (worst) to 1 (best), ties share their mean rank; as in translation_grid.py
  if (column.ranks) return column.ranks;
  const { values, higherIsBetter } = column,
    known = [...values.keys()].filter((row) => values[row] !== null);
  known.sort((a, b) => values[a] - values[b]);
  column.ranks = new Float64Array(values.length).fill(NaN);
  for (let from = 0, to = 0; from < known.length; from = to) {
    while (to < known.length && values[known[to]] === values[known[from]]) to++;
    const share = (from + to - 1) / 2 / Math.max(known.length - 1, 1);
    for (const row of known.slice(from, to)) column.ranks[row] = higherIsBetter === false ? 1 - share : share;
  }
  return column.ranks;
}
