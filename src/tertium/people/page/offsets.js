// Offsets in a text: browsers count UTF-16 units, answers count code points.
// Marks start and end between graphemes, so that no emoji or combining sequence is cut.

export class TextIndex {
  constructor(text, language) {
    this.text = text;
    this.points = new Uint32Array(text.length + 1); // code points before each UTF-16 unit
    const units = [];
    let count = 0;
    for (let unit = 0; unit < text.length; ) {
      const size = text.codePointAt(unit) > 0xffff ? 2 : 1;
      this.points.fill(count, unit, unit + size);
      units.push(unit);
      unit += size;
      count += 1;
    }
    this.points[text.length] = count;
    units.push(text.length);
    this.units = units; // UTF-16 unit of each code point
    this.length = count;
    this.graphemes = boundaries(text, "grapheme", language);
    this.words = null;
    this.language = language;
  }

  toPoint(unit) {
    return this.points[unit];
  }

  toUnit(point) {
    return this.units[point];
  }

  slice(start, end) {
    return this.text.slice(this.units[start], this.units[end]);
  }

  // Return [start, end] in code points, extended to whole graphemes, without blanks at both ends.
  snap(firstUnit, lastUnit) {
    let start = last(this.graphemes, (edge) => edge <= firstUnit);
    let end = this.graphemes.find((edge) => edge >= lastUnit);
    while (start < end && /\s/u.test(this.text[start])) start += 1;
    while (end > start && /\s/u.test(this.text[end - 1])) end -= 1;
    return [this.points[start], this.points[end]];
  }

  // Return the word around a UTF-16 offset as [start, end] in UTF-16 units.
  wordAt(unit) {
    this.words = this.words || boundaries(this.text, "word", this.language);
    const start = last(this.words, (edge) => edge <= Math.min(unit, this.text.length - 1));
    return [start, this.words.find((edge) => edge > start) ?? this.text.length];
  }
}

function boundaries(text, granularity, language) {
  if (!globalThis.Intl?.Segmenter) return simpleBoundaries(text, granularity);
  let segmenter;
  try {
    segmenter = new Intl.Segmenter(language || undefined, { granularity });
  } catch {
    segmenter = new Intl.Segmenter(undefined, { granularity });
  }
  const edges = Array.from(segmenter.segment(text), (part) => part.index);
  edges.push(text.length);
  return edges;
}

function simpleBoundaries(text, granularity) {
  const pattern = granularity === "word" ? /\s+|\S+/gu : /\P{M}[\p{M}\u200d]*|\p{M}+/gu;
  return [...Array.from(text.matchAll(pattern), (match) => match.index), text.length];
}

function last(edges, accept) {
  for (let n = edges.length - 1; n >= 0; n -= 1) if (accept(edges[n])) return edges[n];
  return 0;
}

// Cut a text at the edges of marks; each piece has the marks that cover it.
export function splitAtMarks(index, marks) {
  const edges = new Set([0, index.length]);
  for (const mark of marks) edges.add(mark.start).add(mark.end);
  const sorted = [...edges].sort((a, b) => a - b);
  const pieces = [];
  for (let n = 0; n + 1 < sorted.length; n += 1) {
    const [start, end] = [sorted[n], sorted[n + 1]];
    const covering = marks.filter((mark) => mark.start <= start && end <= mark.end);
    pieces.push({ start, end, text: index.slice(start, end), covering });
  }
  return pieces;
}
