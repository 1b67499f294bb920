// What was found, as a table of segments that unfold.

const MOST_METRICS = 5; // beside a translation; the others are shown when it is unfolded
function metricsShown() {
  const first = data.columns.map((_, n) => n).slice(0, MOST_METRICS);
  return first.includes(chosen("metric")) || !data.columns.length
    ? first
    : [...first.slice(0, -1), chosen("metric")];
}
const arrowed = (metric) => `${metric.name} ${metric.up ? "↑" : "↓"}`;
function columnsShown() {
  // what stands above (in parts, where a name is among it), the sort key, style, metric and cells
  const id = { title: "segment", key: "number", style: "id" };
  return [id, ...(paired() ? pairColumns() : singleColumns()), ...disagreement()];
}
function pairColumns() {
  const metric = chosen("metric"),
    names = ["left", "right"].map((side) => data.systems[chosen(side)]);
  const scores = ["left", "right"].map((key, n) => ({
    title: `${names[n]}: ${arrowed(column())}`,
    parts: [named(names[n]), `: ${arrowed(column())}`],
    key,
    style: "number",
    metric,
    cell: (unit, title) => figures(unit[n], title),
  }));
  return [
    ...names.map((name) => ({ title: name, parts: [named(name)], style: "output" })),
    ...scores,
    { title: "first better by", key: "difference", style: "number", metric, cell: gapCell },
  ];
}
function singleColumns() {
  const scores = metricsShown().map((metric) => ({
    title: arrowed(data.columns[metric]),
    key: "left",
    style: "number",
    metric,
    cell: ([left], title) =>
      figure(score(data.columns[metric], left), data.columns[metric].decimals, title),
  }));
  const people = {
    title: "human",
    key: "human",
    style: "number",
    cell: ([left], title) => figure(human(left), data.human.decimals, title),
  };
  return [{ title: "translation", style: "output" }, ...scores, ...(data.human ? [people] : [])];
}
// What a disagreement says, by the key that sorts on it.
const APART = {
  spread: "metrics’ ranks differ by",
  misfit: "metrics rank it higher (+) or lower (−) than people by",
};
function disagreement() {
  const key = $("sort").value;
  if (!(key in APART)) return [];
  const cell = (unit, title) =>
    make("td", { class: "number", "data-label": title }, percent(key, farthest(data[key], unit)));
  return [{ title: "disagreement", key, style: "number", width: "number apart", cell }];
}
function percent(key, value) {
  if (Number.isNaN(value)) return "–";
  return `${key === "misfit" && value > 0 ? "+" : ""}${shown(100 * value, 0)} %`;
}
function header(columns) {
  const sort = $("sort").value,
    down = $("order").value === "down";
  const cells = columns.map(({ title, parts = [title], key, style, metric }) => {
    if (!key) return make("th", { scope: "col", class: style }, ...parts);
    const active = sort === key && (metric === undefined || metric === chosen("metric"));
    const direction = active ? (down ? "descending" : "ascending") : "none";
    const name = metric === undefined ? key : `${key}-${metric}`;
    return make(
      "th",
      { scope: "col", class: style, "aria-sort": direction },
      make(
        "button",
        { type: "button", "data-sort": name, on: () => sortBy(key, metric, active, name) },
        ...parts,
      ),
    );
  });
  return make("thead", {}, make("tr", {}, ...cells));
}
function sortBy(key, metric, active, name) {
  $("order").value = active
    ? $("order").value === "down"
      ? "up"
      : "down"
    : key === "number"
      ? "up"
      : "down";
  $("sort").value = key;
  if (metric !== undefined) $("metric").value = metric;
  press("");
  find();
  const again = document.querySelector(`#results button[data-sort="${name}"]`);
  if (again) again.focus();
}
function counted(total, from, many, pair) {
  if (!total) return "Nothing found: loosen a filter.";
  const [all, first, last] = [total, from + 1, from + many].map((n) => n.toLocaleString("en"));
  const what = (pair ? "segment" : "translation") + (total === 1 ? "" : "s");
  return `${all} ${what} found; ${first} to ${last} shown`;
}
function render() {
  const pair = paired(),
    metric = column() ? column().name : "score",
    results = $("results");
  const total = state.found.length,
    pages = Math.max(1, Math.ceil(total / PER_PAGE));
  state.page = Math.min(Math.max(state.page, 0), pages - 1);
  const from = state.page * PER_PAGE,
    shownUnits = state.found.slice(from, from + PER_PAGE);
  $("count").textContent = counted(total, from, shownUnits.length, pair);
  $("page").value = state.page + 1;
  $("page").max = pages;
  $("of").textContent = `of ${pages.toLocaleString("en")}`;
  $("previous").disabled = state.page === 0;
  $("next").disabled = state.page >= pages - 1;
  const columns = columnsShown();
  const widths = make(
    "colgroup",
    {},
    ...columns.map(({ style, width = style }) => make("col", { class: width })),
  );
  const caption = pair
    ? [named(columns[1].title), " beside ", named(columns[2].title), `, ${metric}`]
    : ["Translations and their scores"];
  const table = make(
    "table",
    { class: "segments sortable" },
    make("caption", {}, ...caption),
    widths,
    header(columns),
  );
  shownUnits.forEach((unit, n) => table.append(segment(unit, from + n, columns)));
  results.replaceChildren(total ? table : nothing());
  $("legend").replaceChildren(...(total ? legend(columns) : []));
  reachable();
}
function nothing() {
  const text = "Clear search and filters";
  const button = narrowed() ? make("button", { type: "button", on: clearAll }, text) : null;
  return make("p", { class: "empty" }, "Nothing found. ", button);
}
function legend(columns) {
  const marks = $("marks").checked,
    parts = [],
    word = (name, ...said) => parts.push(make(name, { class: "word" }, ...said));
  if (paired()) {
    const [first, second] = [columns[1].title, columns[2].title];
    if (marks) word("del", "only in ", named(first));
    if (marks) word("ins", "only in ", named(second));
    parts.push(make("span", { class: "good" }, "▲ ", named(first), " better"));
    parts.push(make("span", { class: "bad" }, "▼ ", named(second), " better"));
  } else if (marks && data.items.some((item) => item[3].length))
    word("ins", "not in the nearest reference");
  const key = $("sort").value;
  if (key in APART)
    parts.push(make("span", {}, `disagreement: ${APART[key]} this share of all ranks`));
  return parts;
}
function reachable() {
  // what scrolls inside its box must be within reach of the keyboard
  const boxes = [...document.querySelectorAll("#results .text")];
  const cut = boxes.map(
    (box) => box.classList.contains("long") || box.scrollHeight > box.clientHeight + 1,
  );
  boxes.forEach((box, n) => {
    if (cut[n] === box.hasAttribute("role")) return;
    const reach = { role: "region", tabindex: "0", "aria-label": box.dataset.name };
    for (const [key, value] of Object.entries(reach))
      if (cut[n]) box.setAttribute(key, value);
      else box.removeAttribute(key);
  });
}
function segment(unit, place, columns) {
  const [left, right] = unit,
    item = data.items[rows.item[left]];
  const body = make("tbody", { id: `unit-${place}` });
  body.append(make("tr", { class: "given" }, identity(unit, place), given(item, columns.length - 1)));
  const other = right >= 0 ? rows.text[right] : nearest(rows.text[left], item[3]);
  const cells = [output(left, other, right >= 0 ? "del" : "ins", right >= 0)];
  if (right >= 0) cells.push(output(right, rows.text[left], "ins", true));
  for (const { cell, title } of columns) if (cell) cells.push(cell(unit, title));
  body.append(make("tr", {}, ...cells));
  if (state.open.has(place)) body.append(unfolded(unit, place, columns.length));
  return body;
}
function output(row, other, name, labelled) {
  const system = data.systems[data.systemOf[row]],
    text = rows.text[row],
    label = data.items[rows.item[row]][0];
  return make(
    "td",
    { class: "output", "data-label": labelled ? system : "" },
    textBox(marked(text, other, name), {
      class: text.length > LONG ? "text long" : "text",
      dir: "auto",
      lang: "",
      "data-name": `${system}, segment ${label}`,
    }),
    ...badges(row),
  );
}
function badges(row) {
  const kinds = data.warnings.filter((_, n) => data.warned[row] & (1 << n));
  return kinds.map((kind) => make("span", { class: "badge" }, kind));
}
function systemsOf(unit) {
  return unit.filter((row) => row >= 0).map((row) => data.systems[data.systemOf[row]]);
}
function identity(unit, place) {
  const [left, right] = unit,
    item = data.items[rows.item[left]];
  const parts = [/^\d+$/.test(item[0]) ? `# ${item[0]}` : named(item[0])];
  if (right < 0)
    parts.push(make("span", { class: "where" }, named(data.systems[data.systemOf[left]])));
  if (data.documents[item[1]])
    parts.push(make("span", { class: "where" }, named(data.documents[item[1]])));
  parts.push(unfolder(unit, place, item[0]));
  return make("th", { scope: "rowgroup", rowspan: 2 }, ...parts);
}
function unfolder(unit, place, label) {
  const open = state.open.has(place),
    why = explanations(unit).length ? "Scores, explained" : "Scores",
    whose = `of segment ${label}, ${systemsOf(unit).join(" and ")}`;
  return make(
    "button",
    {
      type: "button",
      class: "unfold",
      "aria-expanded": String(open),
      "aria-controls": open ? `scores-${place}` : null,
      "aria-label": open ? `Close the scores ${whose}` : `${why} ${whose}`,
      on: () => toggle(place),
    },
    open ? "Close" : why,
  );
}
const LONG = 3000; // characters from which a text surely fills its box
// The parts in one element: where a direction is found from the text, adding many is slow.
const textBox = (parts, attributes) => make("div", attributes, make("span", {}, ...parts));
function given(item, width) {
  const texts = [...(item[2] ? [["source", item[2]]] : []), ...item[3].map((t) => ["reference", t])];
  const boxes = texts.map(([kind, text]) => {
    const style = text.length > LONG ? "text muted long" : "text muted";
    return make(
      "div",
      { class: style, "data-name": `${kind} of segment ${item[0]}` },
      make("span", { class: "tag" }, kind),
      make("bdi", { lang: "" }, make("span", {}, ...highlighted(text))),
    );
  });
  return make("td", { colspan: width }, ...boxes);
}
const figure = (value, decimals, label, ...more) =>
  make("td", { class: "number", "data-label": label }, shown(value, decimals), ...more);
function figures(row, label) {
  const people = human(row);
  const said = Number.isNaN(people)
    ? []
    : [make("span", { class: "where" }, `human ${shown(people, data.human.decimals)}`)];
  return figure(score(column(), row), column().decimals, label, ...said);
}
function gapCell(unit, label) {
  const gap = difference(unit),
    style = gap > 0 ? "good" : gap < 0 ? "bad" : "";
  const text = Number.isNaN(gap)
    ? "–"
    : `${gap > 0 ? "▲ " : gap < 0 ? "▼ " : ""}${Math.abs(gap).toFixed(column().decimals)}`;
  return make("td", { class: `number ${style}`, "data-label": label }, text);
}
function toggle(place) {
  if (state.open.has(place)) state.open.delete(place);
  else state.open.add(place);
  $(`unit-${place}`).replaceWith(segment(state.found[place], place, columnsShown()));
  reachable();
  $(`unit-${place}`).querySelector(".unfold").focus();
}
function allScores(used) {
  const wide = (name, ...cells) => make("tr", {}, make("th", { scope: "row" }, name), ...cells);
  const number = (text, more = {}) => make("td", { class: "number", ...more }, text);
  const heads = used.flatMap((row) => [named(data.systems[data.systemOf[row]]), "rank among all"]);
  const columns = data.columns.map((metric) => [arrowed(metric), metric]);
  if (data.human) columns.push(["human", data.human]);
  const lines = columns.map(([name, column]) =>
    wide(
      name,
      ...used.flatMap((row) => [
        number(shown(score(column, row), column.decimals)),
        number(percent("rank", ranks(column)[row])),
      ]),
    ),
  );
  for (const [key, said] of Object.entries(APART))
    if (used.some((row) => data[key][row] !== null))
      lines.push(
        wide(said, ...used.map((row) => number(percent(key, perMille(data[key], row)), TWO))),
      );
  const note = "Ranks go from 0 %, the worst translation on this page, to 100 %, the best.";
  return make(
    "table",
    {},
    make("caption", {}, "All scores"),
    make(
      "thead",
      {},
      make(
        "tr",
        {},
        make("th", { scope: "col" }, "metric"),
        ...heads.map((head) => make("th", { scope: "col", class: "number" }, head)),
      ),
    ),
    make("tbody", {}, ...lines),
    make(
      "tfoot",
      {},
      make("tr", {}, make("td", { class: "muted", colspan: 1 + heads.length }, note)),
    ),
  );
}
const TWO = { colspan: 2 };
function unfolded(unit, place, width) {
  const table = allScores(unit.filter((row) => row >= 0));
  const why = explanations(unit).map((entry) => {
    const who = entry[1] < 0 ? "all systems" : named(data.systems[entry[1]]);
    const box = make("details", {}, make("summary", {}, `${entry[2]} · `, who));
    const fill = () => {
      if (box.open && box.childElementCount === 1) box.append(fragment(entry[3]));
    };
    box.addEventListener("toggle", fill);
    return box;
  });
  return make(
    "tr",
    { class: "unfolded", id: `scores-${place}` },
    make(
      "td",
      { colspan: width },
      make("div", { class: "columns" }, table, make("div", {}, ...why)),
    ),
  );
}
function fragment(html) {
  // made and escaped when the report was written
  const holder = make("template");
  holder.innerHTML = html;
  return holder.content;
}
