// Texts with the words marked in which they differ, and the words searched for.

const LARGEST = 4e5; // cells of a word comparison; longer texts are compared as bags of words
const MOST_HITS = 100; // of one term that are shown in one text
const REMEMBERED = 2000; // texts whose comparisons are kept

// Words are separated by blanks; scripts without blanks are compared sign by sign.
const UNSPACED = ["Han", "Hiragana", "Katakana", "Khmer", "Lao", "Myanmar", "Thai", "Tibetan"]
  .map((script) => `\\p{Script=${script}}`)
  .join("");
const WORD = new RegExp(`[${UNSPACED}]\\p{M}*|[^\\s${UNSPACED}]+`, "gu");
const wordsOf = (text) => [...text.matchAll(WORD)];

function common(a, b) {
  // for each word of a, and of b, whether it is among those they share
  const kept = [new Uint8Array(a.length), new Uint8Array(b.length)];
  const keep = (i, j) => {
    kept[0][i] = kept[1][j] = 1;
  };
  let from = 0,
    endA = a.length,
    endB = b.length;
  for (; from < Math.min(endA, endB) && a[from] === b[from]; from++) keep(from, from);
  while (Math.min(endA, endB) > from && a[endA - 1] === b[endB - 1]) keep(--endA, --endB);
  const rest = [a.slice(from, endA), b.slice(from, endB)];
  const large = (rest[0].length + 1) * (rest[1].length + 1) > LARGEST;
  for (const [i, j] of large ? inBags(...rest) : inOrder(...rest)) keep(from + i, from + j);
  return kept;
}
function inOrder(a, b) {
  // the pairs of places of a longest common subsequence
  const n = a.length,
    m = b.length,
    pairs = [],
    width = m + 1,
    table = new Uint16Array((n + 1) * width);
  for (let i = n - 1; i >= 0; i--)
    for (let j = m - 1; j >= 0; j--) {
      table[i * width + j] =
        a[i] === b[j]
          ? table[(i + 1) * width + j + 1] + 1
          : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
    }
  for (let i = 0, j = 0; i < n && j < m;) {
    if (a[i] === b[j]) pairs.push([i++, j++]);
    else if (table[(i + 1) * width + j] >= table[i * width + j + 1]) i++;
    else j++;
  }
  return pairs;
}
function inBags(a, b) {
  // pairs of places of equal words, in whatever order
  const places = new Map();
  for (let j = b.length - 1; j >= 0; j--) {
    if (!places.has(b[j])) places.set(b[j], []);
    places.get(b[j]).push(j);
  }
  return a.flatMap((word, i) => (places.get(word)?.length ? [[i, places.get(word).pop()]] : []));
}
const compared = new Map(); // text, other text: which words of the first both share
function shared(text, other) {
  const known = compared.get(text)?.get(other);
  if (known) return known;
  if (compared.size > REMEMBERED) compared.clear();
  const sides = common(
    wordsOf(text).map((word) => word[0]),
    wordsOf(other).map((word) => word[0]),
  );
  [[text, other], [other, text]].forEach(([one, two], n) => {
    if (!compared.has(one)) compared.set(one, new Map());
    compared.get(one).set(two, sides[n]);
  });
  return sides[0];
}
function runs(words, kept) {
  // from where to where words differ; those one after the other are one run
  const found = [];
  words.forEach((word, n) => {
    const end = word.index + word[0].length;
    if (kept[n]) return;
    if (n && !kept[n - 1]) found[found.length - 1][1] = end;
    else found.push([word.index, end]);
  });
  return found;
}
function marked(text, other, name) {
  if (other === null || !$("marks").checked) return highlighted(text);
  const found = hits(text),
    parts = [];
  let done = 0;
  for (const [from, end] of runs(wordsOf(text), shared(text, other))) {
    parts.push(...highlighted(text, done, from, found));
    parts.push(make(name, { class: "word" }, ...highlighted(text, from, end, found)));
    done = end;
  }
  return [...parts, ...highlighted(text, done, text.length, found)];
}
function nearest(text, references) {
  // the reference that shares most words, in order
  if (references.length < 2) return references.length ? references[0] : null;
  const counts = references.map((other) => shared(text, other).reduce((sum, one) => sum + one, 0));
  return references[most(counts)];
}
function highlighted(text, from = 0, to = text.length, found = hits(text)) {
  // a part of the text, with what was searched for; parts are asked for in their order
  const parts = [];
  let last = from;
  while (found.length && found[0][1] <= from) found.shift();
  for (const [start, end] of found) {
    if (start >= to) break;
    const [first, stop] = [Math.max(start, from), Math.min(end, to)];
    parts.push(text.slice(last, first), make("mark", {}, text.slice(first, stop)));
    last = stop;
  }
  return [...parts, text.slice(last, to)].filter((part) => part !== "");
}
function hits(text) {
  // from where to where the text holds words searched for, in order, none twice
  if (!state.terms.length) return [];
  const flat = folded(text),
    found = [];
  for (const term of state.terms)
    for (
      let at = flat.indexOf(term), n = 0;
      at >= 0 && n < MOST_HITS;
      at = flat.indexOf(term, at + term.length), n++
    )
      found.push([at, at + term.length]);
  if (!found.length) return found;
  const back = flat.length === text.length ? null : origins(text);
  const merged = [];
  for (const [from, to] of found.sort((a, b) => a[0] - b[0])) {
    const last = merged[merged.length - 1],
      end = back ? after(back, to) : to;
    if (last && from <= last[2]) [last[1], last[2]] = [Math.max(last[1], end), Math.max(last[2], to)];
    else merged.push([back ? back[from] : from, end, to]);
  }
  return merged;
}
const PIECE = /[\u1100-\u11ff]+|\P{M}\p{M}*|\p{M}+/gu; // what folds together
function origins(text) {
  // for each place of the folded text, and its end, the place in the text
  const places = [];
  for (const piece of text.matchAll(PIECE))
    for (let n = folded(piece[0]).length; n > 0; n--) places.push(piece.index);
  return [...places, text.length];
}
function after(places, end) {
  let next = end;
  while (places[next] === places[end - 1]) next++;
  return places[next];
}
