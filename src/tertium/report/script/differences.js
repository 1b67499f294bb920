// Texts with the words marked in which they differ, and the words searched for.

const LARGEST = 6e6; // cells of a word comparison; longer texts are compared as bags of words

// Words are separated by blanks; scripts without blanks are compared sign by sign.
const UNSPACED = "\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Thai}";
const TOKEN = new RegExp(`\\s+|[${UNSPACED}]\\p{M}*|[^\\s${UNSPACED}]+`, "gu");
const tokens = (text) => text.match(TOKEN) || [];
const isBlank = (token) => /^\s+$/.test(token);
function common(a, b) {
  // the places in a of a longest common subsequence with b
  const n = a.length,
    m = b.length,
    kept = new Set();
  if ((n + 1) * (m + 1) > LARGEST) {
    const bag = new Map();
    for (const word of b) bag.set(word, (bag.get(word) || 0) + 1);
    a.forEach((word, place) => {
      if (bag.get(word) > 0) {
        bag.set(word, bag.get(word) - 1);
        kept.add(place);
      }
    });
    return kept;
  }
  const width = m + 1,
    table = new Uint16Array((n + 1) * width);
  for (let i = n - 1; i >= 0; i--)
    for (let j = m - 1; j >= 0; j--) {
      table[i * width + j] =
        a[i] === b[j]
          ? table[(i + 1) * width + j + 1] + 1
          : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
    }
  for (let i = 0, j = 0; i < n && j < m;) {
    if (a[i] === b[j]) {
      kept.add(i);
      i++;
      j++;
    } else if (table[(i + 1) * width + j] >= table[i * width + j + 1]) i++;
    else j++;
  }
  return kept;
}
function highlighted(text) {
  const words = terms();
  if (!words.length) return [text];
  const pattern = new RegExp(
    words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|"),
    "giu",
  );
  const parts = [];
  let last = 0;
  for (const hit of text.matchAll(pattern)) {
    if (!hit[0]) continue;
    parts.push(text.slice(last, hit.index), make("mark", {}, hit[0]));
    last = hit.index + hit[0].length;
  }
  return [...parts, text.slice(last)].filter((part) => part !== "");
}
function marked(text, other, name) {
  if (other === null || !$("marks").checked) return highlighted(text);
  const ours = tokens(text);
  const kept = common(
    ours.filter((t) => !isBlank(t)),
    tokens(other).filter((t) => !isBlank(t)),
  );
  const parts = [];
  let place = 0,
    run = "",
    gap = ""; // words that differ one after the other are marked as one
  const flush = () => {
    if (run) parts.push(make(name, { class: "word" }, ...highlighted(run)));
    if (gap) parts.push(gap);
    run = gap = "";
  };
  for (const token of ours) {
    if (isBlank(token)) gap += token;
    else if (kept.has(place++)) {
      flush();
      parts.push(...highlighted(token));
    } else {
      if (run) run += gap;
      else if (gap) parts.push(gap);
      run += token;
      gap = "";
    }
  }
  flush();
  return parts;
}
function nearest(text, references) {
  // the reference that shares most words, in order
  if (references.length < 2) return references.length ? references[0] : null;
  const words = tokens(text).filter((t) => !isBlank(t));
  const shared = references.map(
    (other) =>
      common(
        words,
        tokens(other).filter((t) => !isBlank(t)),
      ).size,
  );
  return references[most(shared)];
}
const textBox = (parts) => make("div", { class: "text", dir: "auto" }, ...parts);
