// Highlight differing words and search terms.

const MAX_ALIGNMENT_CELLS = 4e5; // longer texts are compared as bags of words
const MAX_HITS = 100; // of one term in one text
const MAX_CACHED = 2000; // texts with cached comparisons

// Words are separated by spaces; scripts without spaces are compared by character.
const UNSPACED = ["Han", "Hiragana", "Katakana", "Khmer", "Lao", "Myanmar", "Thai", "Tibetan"]
  .map((script) => `\\p{Script=${script}}`)
  .join("");
const WORD = new RegExp(`[${UNSPACED}]\\p{M}*|[^\\s${UNSPACED}]+`, "gu");
const wordsOf = (text) => [...text.matchAll(WORD)];

function commonWords(a, b) {
  // for each word of a and of b, whether both texts share it
  const isShared = [new Uint8Array(a.length), new Uint8Array(b.length)];
  const setShared = (i, j) => {
    isShared[0][i] = isShared[1][j] = 1;
  };
  let from = 0,
    endA = a.length,
    endB = b.length;
  for (; from < Math.min(endA, endB) && a[from] === b[from]; from++) setShared(from, from);
  while (Math.min(endA, endB) > from && a[endA - 1] === b[endB - 1]) setShared(--endA, --endB);
  const middle = [a.slice(from, endA), b.slice(from, endB)];
  const large = (middle[0].length + 1) * (middle[1].length + 1) > MAX_ALIGNMENT_CELLS;
  for (const [i, j] of large ? matchAsBags(...middle) : matchInOrder(...middle)) setShared(from + i, from + j);
  return isShared;
}
function matchInOrder(a, b) {
  // index pairs of a longest common subsequence
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
function matchAsBags(a, b) {
  // index pairs of equal words in any order
  const places = new Map();
  for (let j = b.length - 1; j >= 0; j--) {
    if (!places.has(b[j])) places.set(b[j], []);
    places.get(b[j]).push(j);
  }
  return a.flatMap((word, i) => (places.get(word)?.length ? [[i, places.get(word).pop()]] : []));
}
const comparisons = new Map(); // text, other text: shared words of the first
function sharedWords(text, other) {
  const cached = comparisons.get(text)?.get(other);
  if (cached) return cached;
  if (comparisons.size > MAX_CACHED) comparisons.clear();
  const sides = commonWords(
    wordsOf(text).map((word) => word[0]),
    wordsOf(other).map((word) => word[0]),
  );
  [[text, other], [other, text]].forEach(([one, two], n) => {
    if (!comparisons.has(one)) comparisons.set(one, new Map());
    comparisons.get(one).set(two, sides[n]);
  });
  return sides[0];
}
function differingRuns(words, isShared) {
  // start and end of runs of words that are not shared
  const found = [];
  words.forEach((word, n) => {
    const end = word.index + word[0].length;
    if (isShared[n]) return;
    if (n && !isShared[n - 1]) found[found.length - 1][1] = end;
    else found.push([word.index, end]);
  });
  return found;
}
function markDifferences(text, other, name) {
  if (other === null || !$("show-differences").checked) return highlightTerms(text);
  const found = findTerms(text),
    parts = [];
  let done = 0;
  for (const [from, end] of differingRuns(wordsOf(text), sharedWords(text, other))) {
    parts.push(...highlightTerms(text, done, from, found));
    parts.push(make(name, { class: "word" }, ...highlightTerms(text, from, end, found)));
    done = end;
  }
  return [...parts, ...highlightTerms(text, done, text.length, found)];
}
function nearestReference(text, references) {
  // the reference with the most shared words
  if (references.length < 2) return references.length ? references[0] : null;
  const counts = references.map((other) => sharedWords(text, other).reduce((sum, one) => sum + one, 0));
  return references[indexOfMax(counts)];
}
function highlightTerms(text, from = 0, to = text.length, found = findTerms(text)) {
  // a part of the text with search terms marked; call for parts in order
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
function findTerms(text) {
  // start and end of search terms in the text, merged and sorted
  if (!state.terms.length) return [];
  const flat = foldText(text),
    found = [];
  for (const term of state.terms)
    for (
      let at = flat.indexOf(term), n = 0;
      at >= 0 && n < MAX_HITS;
      at = flat.indexOf(term, at + term.length), n++
    )
      found.push([at, at + term.length]);
  if (!found.length) return found;
  const back = flat.length === text.length ? null : sourceOffsets(text);
  const merged = [];
  for (const [from, to] of found.sort((a, b) => a[0] - b[0])) {
    const last = merged[merged.length - 1],
      end = back ? endOffset(back, to) : to;
    if (last && from <= last[2]) [last[1], last[2]] = [Math.max(last[1], end), Math.max(last[2], to)];
    else merged.push([back ? back[from] : from, end, to]);
  }
  return merged;
}
const PIECE = /[\u1100-\u11ff]+|\P{M}\p{M}*|\p{M}+/gu; // is folded as a unit
function sourceOffsets(text) {
  // for each offset of the folded text, the offset in the original
  const places = [];
  for (const piece of text.matchAll(PIECE))
    for (let n = foldText(piece[0]).length; n > 0; n--) places.push(piece.index);
  return [...places, text.length];
}
function endOffset(places, end) {
  let next = end;
  while (places[next] === places[end - 1]) next++;
  return places[next];
}
