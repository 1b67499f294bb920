// A text in which errors are marked by mouse, touch or keyboard. It is an editable element whose
// edits are all refused: the browser provides caret, selection and movement in every script.

import { TextIndex, splitAtMarks } from "/static/offsets.js";

export const SEVERITY_KEYS = { 1: "minor", 2: "major", 3: "critical", 0: "neutral" };
const ORDER = ["neutral", "minor", "major", "critical", "bad"];

export class MarkableText {
  // `onMark(start, end, severity)`, `onRemove(mark)` and `onSelect(text)` are called on actions.
  constructor({ text, language, direction, label, description, severities, handlers }) {
    this.index = new TextIndex(text, language);
    this.severities = severities;
    this.handlers = handlers;
    this.marks = [];
    this.pending = null; // [start, end] in code points
    this.isComposing = false;
    this.taps = 0; // a tap selects a word, the next one extends the selection
    this.element = make("div", {
      class: "text markable",
      contenteditable: "true",
      role: "textbox",
      "aria-multiline": "true",
      "aria-readonly": "true",
      "aria-label": label,
      "aria-describedby": description,
      inputmode: "none",
      spellcheck: "false",
      autocapitalize: "off",
      translate: "no",
      lang: language || null,
      dir: direction,
      tabindex: "0",
    });
    for (const type of ["beforeinput", "paste", "cut", "drop", "dragstart"]) {
      this.element.addEventListener(type, (event) => event.preventDefault());
    }
    this.element.addEventListener("compositionstart", () => (this.isComposing = true));
    this.element.addEventListener("compositionend", () => {
      this.isComposing = false;
      this.render(this.marks); // input methods may change the text in spite of us
    });
    this.element.addEventListener("input", () => this.isComposing || this.render(this.marks));
    this.element.addEventListener("keydown", (event) => this.onKey(event));
    this.element.addEventListener("pointerdown", (event) => {
      this.isTouch = event.pointerType === "touch";
      this.readSelection();
      this.beforeTap = this.pending;
    });
    this.element.addEventListener("click", (event) => this.onClick(event));
    this.render([]);
  }

  render(marks) {
    this.marks = marks;
    const caret = document.activeElement === this.element ? this.units() : null;
    const pieces = splitAtMarks(this.index, marks).map((piece) => {
      if (!piece.covering.length) return document.createTextNode(piece.text);
      const ranks = piece.covering.map((mark) => ORDER.indexOf(mark.severity));
      const classes = ["mark", ORDER[Math.max(...ranks)]];
      if (piece.covering.every((mark) => mark.prefilled)) classes.push("suspected");
      return make("span", { class: classes.join(" ") }, piece.text);
    });
    this.element.replaceChildren(...pieces);
    if (this.element.textContent.endsWith("\n")) this.element.append(document.createElement("br"));
    if (caret) this.select(...caret);
  }

  // The selection as [start, end] in UTF-16 units, null if it is elsewhere.
  units() {
    const selection = document.getSelection();
    if (!selection?.rangeCount) return null;
    const range = selection.getRangeAt(0);
    if (!this.element.contains(range.startContainer)) return null;
    if (!this.element.contains(range.endContainer)) return null;
    const before = document.createRange();
    before.setStart(this.element, 0);
    before.setEnd(range.startContainer, range.startOffset);
    const start = before.toString().length;
    return [start, start + range.toString().length];
  }

  select(start, end) {
    const [first, firstOffset] = this.position(start);
    const [second, secondOffset] = this.position(end);
    document.getSelection().setBaseAndExtent(first, firstOffset, second, secondOffset);
  }

  position(unit) {
    const walker = document.createTreeWalker(this.element, NodeFilter.SHOW_TEXT);
    let rest = unit;
    let node = walker.nextNode();
    while (node && rest > node.length) {
      rest -= node.length;
      const next = walker.nextNode();
      if (!next) return [node, node.length];
      node = next;
    }
    return node ? [node, rest] : [this.element, 0];
  }

  // Called when the selection of the page changes.
  readSelection() {
    const units = this.units();
    if (!units) return;
    const [start, end] = units[0] === units[1] ? [0, 0] : this.index.snap(...units);
    this.pending = start < end ? [start, end] : null;
    this.handlers.onSelect(this.pending ? this.index.slice(start, end) : "");
  }

  markPending(severity) {
    this.readSelection(); // the event of a change may still be on its way
    if (!this.pending) return false;
    const [start, end] = this.pending;
    this.pending = null;
    if (this.units()) this.select(this.index.toUnit(end), this.index.toUnit(end));
    this.handlers.onMark(start, end, severity);
    return true;
  }

  marksAtCaret() {
    const units = this.units();
    if (!units) return [];
    const [first, second] = units.map((unit) => this.index.toPoint(unit));
    const touched = this.marks.filter((mark) => mark.start <= second && first <= mark.end);
    const inside = touched.filter((mark) => mark.start < second && first < mark.end);
    return inside.length ? inside : touched;
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.isComposing) return;
    const severity = SEVERITY_KEYS[event.key];
    if (severity && this.severities.includes(severity)) {
      event.preventDefault();
      if (!this.markPending(severity)) this.handlers.onNothing();
    } else if (event.key === "Delete" || event.key === "Backspace") {
      event.preventDefault();
      const [mark] = this.marksAtCaret();
      if (mark) this.handlers.onRemove(mark);
    } else if (event.key === "Enter") {
      event.preventDefault();
      const [mark] = this.marksAtCaret();
      if (mark) this.handlers.onOpen(mark);
    }
  }

  // A click on a mark opens it. A tap selects a word, the next tap extends the selection to another.
  onClick(event) {
    const unit = this.unitAt(event.clientX, event.clientY);
    const selected = this.units();
    if (unit === null || (selected && selected[0] !== selected[1] && !this.isTouch)) return;
    const point = this.index.toPoint(unit);
    const mark = this.marks.find((m) => m.start <= point && point < m.end);
    if (mark && !this.beforeTap) this.handlers.onOpen(mark, false);
    if (!this.isTouch || mark) return;
    let [start, end] = this.index.wordAt(unit);
    this.taps = this.beforeTap && this.taps === 1 ? 2 : 1;
    if (this.taps === 2) {
      start = Math.min(start, this.index.toUnit(this.beforeTap[0]));
      end = Math.max(end, this.index.toUnit(this.beforeTap[1]));
    }
    this.select(start, end);
  }

  // The UTF-16 unit at a point of the window, null if there is no text.
  unitAt(x, y) {
    const place = document.caretPositionFromPoint?.(x, y);
    const range = place ? null : document.caretRangeFromPoint?.(x, y);
    const node = place?.offsetNode ?? range?.startContainer;
    if (!node || !this.element.contains(node)) return null;
    const before = document.createRange();
    before.setStart(this.element, 0);
    before.setEnd(node, place?.offset ?? range.startOffset);
    return before.toString().length;
  }
}
