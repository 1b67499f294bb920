// The data of the page, unpacked: items with their texts, rows of scores, explanations.

let data = null,
  rows = null;
async function unpack() {
  const packed = atob($("data").textContent);
  const bytes = new Uint8Array(packed.length);
  for (let n = 0; n < packed.length; n++) bytes[n] = packed.charCodeAt(n);
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
  data.explainedBy = new Map();
  for (const entry of data.explained) {
    if (!data.explainedBy.has(entry[0])) data.explainedBy.set(entry[0], []);
    data.explainedBy.get(entry[0]).push(entry);
  }
}
function lengthOf(text) {
  // in words, or in code points where a script has no blanks
  if (data.unit === "word") return text.match(/\S+/g)?.length ?? 0;
  let count = 0;
  for (const _ of text) count++;
  return count;
}
function rowOf(item, system) {
  for (let row = rows.start[item]; row < rows.start[item + 1]; row++)
    if (data.systemOf[row] === system) return row;
  return -1;
}
const scaled = (value, decimals) =>
  value === null || value === undefined ? NaN : value / 10 ** decimals;
const score = (column, row) => (row < 0 ? NaN : scaled(column.values[row], column.decimals));
const human = (row) =>
  row < 0 || !data.human ? NaN : scaled(data.human.values[row], data.human.decimals);
function shown(value, decimals) {
  if (Number.isNaN(value)) return "–";
  const text = Math.abs(value).toFixed(decimals);
  return value < 0 && Number(text) !== 0 ? `−${text}` : text;
}
const perMille = (values, row) => (row < 0 || values[row] === null ? NaN : values[row] / 1000);
function farthest(values, [left, right]) {
  // the larger of two disagreements, with its sign
  const [a, b] = [perMille(values, left), perMille(values, right)];
  return Number.isNaN(a) || Math.abs(b) > Math.abs(a) ? b : a;
}
function ranks(column) {
  // from 0, the worst of all translations, to 1, equals in the middle; as grid.py has them
  if (column.ranks) return column.ranks;
  const { values, up } = column,
    known = [...values.keys()].filter((row) => values[row] !== null);
  known.sort((a, b) => values[a] - values[b]);
  column.ranks = new Float64Array(values.length).fill(NaN);
  for (let from = 0, to = 0; from < known.length; from = to) {
    while (to < known.length && values[known[to]] === values[known[from]]) to++;
    const share = (from + to - 1) / 2 / Math.max(known.length - 1, 1);
    for (const row of known.slice(from, to)) column.ranks[row] = up === false ? 1 - share : share;
  }
  return column.ranks;
}
