// The parts of an answer: score, rank, post-edited text, and the list of marked errors.

export const letter = (n) => String.fromCharCode(65 + (n % 26)) + (n > 25 ? Math.floor(n / 26) : "");

let lastId = 0;
export const newElementId = (name) => `${name}-${(lastId += 1)}`;

// A slider without a value until the rater sets one.
export function scoreSlider({ value, label, anchors, text, onChange }) {
  const id = newElementId("score");
  const output = make("output", { for: id, class: "score-value" });
  const slider = make("input", { type: "range", id, min: "0", max: "100", step: "1" });
  const show = (score) => {
    slider.value = score ?? 50;
    slider.classList.toggle("unset", score === null);
    slider.setAttribute("aria-valuetext", score === null ? text("notSet") : String(score));
    output.textContent = score === null ? "–" : String(score);
  };
  show(value);
  const set = () => {
    show(Number(slider.value));
    onChange(Number(slider.value));
  };
  slider.addEventListener("input", () => show(Number(slider.value)));
  slider.addEventListener("change", set);
  slider.addEventListener("pointerup", () => slider.classList.contains("unset") && set());
  slider.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    set();
  });
  const ticks = anchors.map(([position, name]) =>
    make("button", { type: "button", class: "anchor", on: () => (slider.value = position, set()) },
      make("b", {}, String(position)), ` ${name}`));
  return make("div", { class: "score" },
    make("label", { for: id }, label), make("div", { class: "slider" }, slider, output),
    make("div", { class: "anchors" }, ...ticks));
}

export function rankChoice({ value, count, label, text, onChange }) {
  const name = newElementId("rank");
  const choices = Array.from({ length: count }, (_, n) => {
    const input = make("input", { type: "radio", name, value: String(n + 1), checked: value === n + 1 });
    input.addEventListener("change", () => onChange(n + 1));
    const hint = n === 0 ? text("best") : n === count - 1 ? text("worst") : "";
    return make("label", { class: "rank" }, input, ` ${n + 1}${hint && ` (${hint})`}`);
  });
  return make("fieldset", { class: "ranks" }, make("legend", {}, label), ...choices);
}

export function editor({ value, original, label, language, direction, text, onChange }) {
  const id = newElementId("edit");
  const area = make("textarea", { id, lang: language || null, dir: direction, rows: "4", spellcheck: "true" });
  area.value = value ?? original;
  const note = make("p", { class: "note", role: "status" });
  const show = () => {
    const [edits, total] = editDistance(units(original), units(area.value));
    note.textContent = text("edits", { edits, total });
    area.rows = Math.min(16, Math.max(3, Math.ceil(area.value.length / 70) + 1));
  };
  let timer = null;
  const commit = () => {
    clearTimeout(timer);
    timer = null;
    onChange(area.value);
  };
  area.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(commit, 800);
    show();
  });
  area.addEventListener("blur", () => timer !== null && commit());
  show();
  const reset = make("button", { type: "button", on: () => { area.value = original; show(); commit(); } }, text("restore"));
  const element = make("div", { class: "edit" }, make("label", { for: id }, label), area, note, reset);
  return { element, read: () => (timer !== null && commit(), area.value) };
}

// Words, or characters in scripts without spaces.
function units(text) {
  return text.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]+/gu) ?? [];
}

function editDistance(before, after) {
  let row = Array.from({ length: after.length + 1 }, (_, n) => n);
  for (let i = 1; i <= before.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= after.length; j += 1) {
      const same = before[i - 1] === after[j - 1] ? 0 : 1;
      next.push(Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + same));
    }
    row = next;
  }
  return [row[after.length], after.length];
}

function choice(label, options, value, onChange) {
  const select = make("select", { "aria-label": label }, ...options);
  select.value = value;
  select.addEventListener("change", () => onChange(select.value));
  return select;
}

function categoryOptions(typology, text) {
  const groups = typology.map(({ name, subcategories = [] }) =>
    subcategories.length
      ? make("optgroup", { label: name }, ...subcategories.map((sub) => option(`${name}/${sub}`, `${name}: ${sub}`)))
      : option(name, name));
  return [option("", text("chooseCategory")), ...groups];
}

// The marked errors of one output, each with its severity, category and a button to remove it.
export function markList({ marks, quote, severities, typology, text, onChange, onRemove }) {
  const rows = marks.map((mark) => {
    const words = mark.start === undefined ? text("missingContent") : quote(mark);
    const row = make("li", { class: `mark-row ${mark.severity}` },
      make("span", { class: "quote" }, named(words.length > 80 ? `${words.slice(0, 80)}…` : words)),
      mark.side === "source" ? make("span", { class: "tag" }, text("source")) : null,
      mark.prefilled ? make("span", { class: "tag" }, text("suspected")) : null,
      choice(text("severityOf", { words }), severities.map((name) => option(name, text(name))), mark.severity,
        (severity) => onChange(mark, { severity })),
      typology.length
        ? choice(text("categoryOf", { words }), categoryOptions(typology, text), mark.category ?? "",
            (category) => onChange(mark, { category }))
        : null,
      make("button", { type: "button", class: "remove", "aria-label": text("removeMark", { words }), on: () => onRemove(mark) }, "✕"));
    row.mark = mark;
    return row;
  });
  return make("ul", { class: "marks", "aria-label": text("markedErrors") }, ...rows);
}
