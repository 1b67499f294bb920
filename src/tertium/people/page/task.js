// One task: source, reference, context, and the translations with the controls of the protocol.

import { editor, letter, markList, newElementId, rankChoice, scoreSlider } from "/static/forms.js";
import { MarkableText } from "/static/marking.js";

const copy = (value) => JSON.parse(JSON.stringify(value));

export class TaskView {
  constructor({ campaign, task, number, draft, text, record, announce }) {
    Object.assign(this, { campaign, task, draft, text, record, announce });
    this.texts = []; // {markable, side, output}
    this.editors = [];
    this.heading = make("h2", { tabindex: "-1" }, text("taskNumber", { number: number + 1 }));
    this.hint = newElementId("hint");
    this.outputs = make("div", { class: task.outputs.length > 1 ? "outputs many" : "outputs" });
    this.source = task.source === null ? null : this.plainOrMarkableSource();
    this.element = make("article", {}, ...this.parts());
    this.update(draft);
  }

  get canMark() {
    return this.campaign.severities.length > 0;
  }

  parts() {
    const { task, text, campaign } = this;
    return [
      make("div", { class: "heading" }, this.heading,
        task.kind === "tutorial" ? make("span", { class: "tag" }, text("practice")) : null,
        task.document ? make("bdi", { class: "muted" }, task.document) : null),
      task.notes ? make("p", { class: "banner", dir: "auto" }, task.notes) : null,
      this.context(task.before, "contextBefore"),
      this.source && make("section", { class: "block" }, make("h3", {}, text("source")), this.source),
      task.reference !== null
        ? make("section", { class: "block" }, make("h3", {}, text("reference")), this.plain(task.reference, campaign.target))
        : null,
      this.glossary(),
      this.canMark ? make("p", { class: "note", id: this.hint }, text("markHint")) : null,
      this.outputs,
      this.context(task.after, "contextAfter"),
      this.comment(),
    ].filter(Boolean);
  }

  plain(words, { language, direction }) {
    return make("p", { class: "text", lang: language || null, dir: direction }, words);
  }

  plainOrMarkableSource() {
    const { task, campaign, text } = this;
    if (campaign.protocol !== "mqm") return this.plain(task.source, campaign.source);
    const markable = this.markable(task.source, campaign.source, text("source"), "source", 0);
    return make("div", {}, markable.element, this.toolbar(markable));
  }

  context(neighbors, name) {
    if (!neighbors.length) return null;
    const { campaign } = this;
    const rows = neighbors.map((neighbor) => make("div", { class: "neighbor" },
      this.plain(neighbor.source, campaign.source),
      ...neighbor.outputs.filter((words) => words !== null).map((words) => this.plain(words, campaign.target))));
    return make("section", { class: "context" }, make("h3", {}, this.text(name)), ...rows);
  }

  glossary() {
    const source = (this.task.source ?? "").toLowerCase();
    const terms = this.campaign.glossary.filter((term) => source.includes(term.source.toLowerCase()));
    if (!terms.length) return null;
    const rows = terms.map(({ source: from, target, note }) => [
      make("dt", { dir: "auto" }, from), make("dd", { dir: "auto" }, target, note ? make("small", {}, ` (${note})`) : null)]);
    return make("section", { class: "block glossary" }, make("h3", {}, this.text("glossary")), make("dl", {}, ...rows.flat()));
  }

  comment() {
    const area = make("textarea", { rows: "2", dir: "auto", id: newElementId("comment") });
    area.value = this.draft.comment;
    area.addEventListener("change", () => this.change("comment", () => (this.draft.comment = area.value.toWellFormed?.() ?? area.value)));
    this.commentArea = area;
    return make("div", { class: "comment" }, make("label", { for: area.id }, this.text("comment")), area);
  }

  markable(words, { language, direction }, label, side, output) {
    const markable = new MarkableText({
      text: words, language, direction, label, description: this.hint, severities: this.campaign.severities,
      handlers: {
        onMark: (start, end, severity) => this.addMark(output, { start, end, side, severity }),
        onRemove: (mark) => this.removeMark(output, mark),
        onOpen: (mark, focus = true) => this.openMark(output, mark, focus),
        onNothing: () => this.announce(this.text("selectFirst")),
        onSelect: (selected) => this.showSelection(markable, selected),
      },
    });
    this.texts.push({ markable, side, output });
    return markable;
  }

  toolbar(markable) {
    const buttons = this.campaign.severities.map((severity) => {
      const node = make("button", { type: "button", class: `severity ${severity}`, on: () => {
        if (!markable.markPending(severity)) this.announce(this.text("selectFirst"));
      } }, this.text(severity));
      node.addEventListener("pointerdown", (event) => event.preventDefault()); // keeps the selection
      return node;
    });
    const bar = make("div", { class: "toolbar", role: "group", "aria-label": this.text("markAs") }, make("span", { class: "muted" }, this.text("markAs")), ...buttons);
    markable.bar = bar;
    return bar;
  }

  showSelection(markable, selected) {
    for (const entry of this.texts) {
      if (entry.markable !== markable) entry.markable.pending = null;
      entry.markable.bar?.classList.toggle("active", entry.markable === markable && Boolean(selected));
    }
    if (selected) this.announce(this.text("selected", { words: selected }));
  }

  readSelection() {
    for (const { markable } of this.texts) markable.readSelection();
  }

  change(detail, edit) {
    const before = copy(this.draft);
    edit();
    this.record(detail, before);
    this.refresh();
  }

  addMark(output, mark) {
    this.change("mark", () => this.draft.outputs[output].marks.push(mark));
    this.announce(this.text("marked", { words: this.quote(output, mark), severity: this.text(mark.severity) }));
    if (this.campaign.typology.length) this.openMark(output, mark, true);
  }

  removeMark(output, mark) {
    const wasInList = this.lists[output].contains(document.activeElement);
    this.change("unmark", () => {
      const marks = this.draft.outputs[output].marks;
      marks.splice(marks.indexOf(mark), 1);
    });
    if (wasInList) this.texts.find((entry) => entry.side !== "source" && entry.output === output).markable.element.focus();
    this.announce(this.text("unmarked", { words: this.quote(output, mark) }));
  }

  changeMark(output, mark, values) {
    this.change("change mark", () => Object.assign(mark, values));
    this.openMark(output, mark, true, "category" in values);
  }

  openMark(output, mark, focus, isSecond = false) {
    const row = [...this.lists[output].querySelectorAll("li")].find((node) => node.mark === mark);
    for (const node of this.element.querySelectorAll(".mark-row.open")) node.classList.remove("open");
    row?.classList.add("open");
    if (!focus || !row) return;
    const selects = row.querySelectorAll("select");
    (isSecond || (this.campaign.typology.length && !mark.category) ? selects[selects.length - 1] : selects[0]).focus();
  }

  quote(output, mark) {
    if (mark.start === undefined) return this.text("missingContent");
    const side = mark.side === "source" ? "source" : "hypothesis";
    const entry = this.texts.find((other) => other.side === side && (side === "source" || other.output === output));
    return entry.markable.index.slice(mark.start, mark.end);
  }

  // Show a draft from the start, such as after undo.
  update(draft) {
    this.draft = draft;
    this.editors = [];
    this.texts = this.texts.filter((entry) => entry.side === "source");
    this.lists = [];
    this.outputs.replaceChildren(...this.task.outputs.map((output, n) => this.outputBlock(output, n)));
    this.commentArea.value = draft.comment;
    this.refresh();
  }

  outputBlock(output, n) {
    const { text, campaign, draft, task } = this;
    const name = task.outputs.length > 1 ? text("translationName", { name: letter(n) }) : text("translation");
    const block = make("section", { class: "block output" }, make("h3", {}, name));
    this.lists.push(make("div", { class: "mark-list" }));
    if (campaign.protocol === "post-edit") {
      block.append(this.plain(output.text, campaign.target));
      const field = editor({
        value: draft.outputs[n].edited, original: output.text, label: text("editedTranslation"), ...campaign.target, text,
        onChange: (edited) => this.change("edit", () => (this.draft.outputs[n].edited = edited.toWellFormed?.() ?? edited)),
      });
      this.editors.push(field);
      block.append(field.element);
      return block;
    }
    if (!this.canMark) block.append(this.plain(output.text, campaign.target));
    else {
      const markable = this.markable(output.text, campaign.target, name, "hypothesis", n);
      const missing = make("button", { type: "button", class: "missing", on: () => this.addMark(n, { severity: "major" }) }, text("addMissing"));
      block.append(markable.element, make("div", { class: "row" }, this.toolbar(markable), missing), this.lists[n]);
    }
    if (campaign.protocol === "ranking") {
      block.append(rankChoice({
        value: draft.outputs[n].rank, count: task.outputs.length, label: text("rankOf", { name }), text,
        onChange: (rank) => this.change("rank", () => (this.draft.outputs[n].rank = rank)),
      }));
    } else if (campaign.protocol !== "mqm") {
      block.append(scoreSlider({
        value: draft.outputs[n].score, label: task.outputs.length > 1 ? text("scoreOf", { name }) : text("score"), text,
        anchors: [0, 33, 66, 100].map((position) => [position, text(`anchor${position}`)]),
        onChange: (score) => this.change("score", () => (this.draft.outputs[n].score = score)),
      }));
    }
    return block;
  }

  // Show the marks of the draft.
  refresh() {
    if (!this.canMark) return;
    for (const { markable, side, output } of this.texts) {
      const marks = this.draft.outputs.flatMap((answer, n) => (side === "source" || n === output ? answer.marks : []));
      markable.render(marks.filter((mark) => mark.start !== undefined && (mark.side ?? "hypothesis") === side));
    }
    this.lists.forEach((list, n) => {
      list.replaceChildren(markList({
        marks: this.draft.outputs[n].marks, quote: (mark) => this.quote(n, mark), text: this.text,
        severities: this.campaign.severities, typology: this.campaign.typology,
        onChange: (mark, values) => this.changeMark(n, mark, values), onRemove: (mark) => this.removeMark(n, mark),
      }));
    });
  }

  // Record what is still being typed.
  commit() {
    for (const field of this.editors) field.read();
    if (this.commentArea.value !== this.draft.comment) this.commentArea.dispatchEvent(new Event("change"));
  }
}
