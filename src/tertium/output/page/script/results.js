// Search results: a table of segments with details on demand.

const MAX_METRIC_COLUMNS = 5; // the details of a segment show all metrics
function visibleMetrics() {
  const first = data.columns.map((_, n) => n).slice(0, MAX_METRIC_COLUMNS);
  return first.includes(selected("metric")) || !data.columns.length
    ? first
    : [...first.slice(0, -1), selected("metric")];
}
const withArrow = (metric) => `${metric.name} ${metric.higherIsBetter ? "↑" : "↓"}`;
function visibleColumns() {
  // title (in parts if it contains a name), sort key, style, metric and cell function
  const id = { title: "segment", key: "number", style: "id" };
  return [id, ...(isPaired() ? pairColumns() : singleColumns()), ...disagreementColumn()];
}
function pairColumns() {
  const metric = selected("metric"),
    names = ["left", "right"].map((side) => data.systems[selected(side)]);
  const scores = ["left", "right"].map((key, n) => ({
    title: `${names[n]}: ${withArrow(column())}`,
    parts: [named(names[n]), `: ${withArrow(column())}`],
    key,
    style: "number",
    metric,
    cell: (unit, title) => scoreCell(unit[n], title),
  }));
  return [
    ...names.map((name) => ({ title: name, parts: [named(name)], style: "output" })),
    ...scores,
    { title: "difference", key: "difference", style: "number", metric, cell: gapCell },
  ];
}
function singleColumns() {
  const scores = visibleMetrics().map((metric) => ({
    title: withArrow(data.columns[metric]),
    key: "left",
    style: "number",
    metric,
    cell: ([left], title) =>
      numberCell(score(data.columns[metric], left), data.columns[metric].decimals, title),
  }));
  const humanColumn = {
    title: "human",
    key: "human",
    style: "number",
    cell: ([left], title) => numberCell(human(left), data.human.decimals, title),
  };
  return [{ title: "translation", style: "output" }, ...scores, ...(data.human ? [humanColumn] : [])];
}
// Explanation of a disagreement, by its sort key.
const DISAGREEMENTS = {
  metricDisagreement: "difference between the highest and lowest metric rank",
  humanDisagreement: "mean metric rank minus human rank",
};
function disagreementColumn() {
  const key = $("sort").value;
  if (!(key in DISAGREEMENTS)) return [];
  const cell = (unit, title) =>
    make("td", { class: "number", "data-label": title }, percent(key, largestDisagreement(data[key], unit)));
  return [{ title: "disagreement", key, style: "number", width: "number disagreement", cell }];
}
function percent(key, value) {
  if (Number.isNaN(value)) return "–";
  return `${key === "humanDisagreement" && value > 0 ? "+" : ""}${formatNumber(100 * value, 0)} %`;
}
function header(columns) {
  const sort = $("sort").value,
    descending = $("order").value === "down";
  const cells = columns.map(({ title, parts = [title], key, style, metric }) => {
    if (!key) return make("th", { scope: "col", class: style }, ...parts);
    const active = sort === key && (metric === undefined || metric === selected("metric"));
    const direction = active ? (descending ? "descending" : "ascending") : "none";
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
  const isUp = active ? $("order").value === "down" : key === "number";
  $("order").value = isUp ? "up" : "down";
  $("sort").value = key;
  if (metric !== undefined) $("metric").value = metric;
  setActivePreset("");
  runQuery();
  const again = document.querySelector(`#results button[data-sort="${name}"]`);
  if (again) again.focus();
}
function describeCount(total, from, count, pair) {
  if (!total) return "No matches: relax or clear the filters.";
  const [all, first, last] = [total, from + 1, from + count].map((n) => n.toLocaleString("en"));
  const noun = (pair ? "segment" : "translation") + (total === 1 ? "" : "s");
  return `${all} ${noun}; showing ${first} to ${last}`;
}
function render() {
  const pair = isPaired(),
    metric = column() ? column().name : "score",
    results = $("results");
  const total = state.found.length,
    pages = Math.max(1, Math.ceil(total / PER_PAGE));
  state.page = Math.min(Math.max(state.page, 0), pages - 1);
  const from = state.page * PER_PAGE,
    pageUnits = state.found.slice(from, from + PER_PAGE);
  $("count").textContent = describeCount(total, from, pageUnits.length, pair);
  $("page").value = state.page + 1;
  $("page").max = pages;
  $("of").textContent = `of ${pages.toLocaleString("en")}`;
  $("previous").disabled = state.page === 0;
  $("next").disabled = state.page >= pages - 1;
  const columns = visibleColumns();
  const widths = make(
    "colgroup",
    {},
    ...columns.map(({ style, width = style }) => make("col", { class: width })),
  );
  const caption = pair
    ? [named(columns[1].title), " compared with ", named(columns[2].title), `, ${metric}`]
    : ["Translations and scores"];
  const table = make(
    "table",
    { class: "segments sortable" },
    make("caption", {}, ...caption),
    widths,
    header(columns),
  );
  pageUnits.forEach((unit, n) => table.append(segmentBody(unit, from + n, columns)));
  results.replaceChildren(total ? table : emptyMessage());
  $("legend").replaceChildren(...(total ? legend(columns) : []));
}
function emptyMessage() {
  const text = "Clear search and filters";
  const button = isFiltered() ? make("button", { type: "button", on: clearAllFilters }, text) : null;
  return make("p", { class: "empty" }, "No matches. ", button);
}
function legend(columns) {
  const showsDifferences = $("show-differences").checked,
    parts = [],
    word = (name, ...children) => parts.push(make(name, { class: "word" }, ...children));
  if (isPaired()) {
    const [first, second] = [columns[1].title, columns[2].title];
    if (showsDifferences) word("del", "only in ", named(first));
    if (showsDifferences) word("ins", "only in ", named(second));
    parts.push(make("span", { class: "good" }, "▲ ", named(first), " better"));
    parts.push(make("span", { class: "bad" }, "▼ ", named(second), " better"));
  } else if (showsDifferences && data.items.some((item) => item[3].length))
    word("ins", "not in the nearest reference");
  const key = $("sort").value;
  if (key in DISAGREEMENTS)
    parts.push(make("span", {}, `disagreement: ${DISAGREEMENTS[key]}, in percent of all ranks`));
  return parts;
}
function segmentBody(unit, place, columns) {
  const [left, right] = unit,
    item = data.items[rows.item[left]];
  const body = make("tbody", { id: `unit-${place}` });
  body.append(make("tr", { class: "inputs" }, segmentHeader(unit, place), inputTexts(item, columns.length - 1)));
  const other = right >= 0 ? rows.text[right] : nearestReference(rows.text[left], item[3]);
  const cells = [outputCell(left, other, right >= 0 ? "del" : "ins", right >= 0)];
  if (right >= 0) cells.push(outputCell(right, rows.text[left], "ins", true));
  for (const { cell, title } of columns) if (cell) cells.push(cell(unit, title));
  body.append(make("tr", {}, ...cells));
  if (state.open.has(place)) body.append(detailsRow(unit, place, columns.length));
  return body;
}
function outputCell(row, other, name, isLabeled) {
  const system = data.systems[data.systemIndices[row]],
    text = rows.text[row],
    label = data.items[rows.item[row]][0];
  return make(
    "td",
    { class: "output", "data-label": isLabeled ? system : "" },
    make(
      "div",
      { dir: "auto", lang: "", ...boxAttributes("text", text, `${system}, segment ${label}`) },
      // one inner element: many are slow to add while the text direction is detected
      make("span", {}, ...markDifferences(text, other, name)),
    ),
    ...warningBadges(row),
  );
}
function warningBadges(row) {
  const kinds = data.warnings.filter((_, n) => hasWarningKind(row, n));
  return kinds.map((kind) => make("span", { class: "badge" }, kind));
}
function systemNames(unit) {
  return unit.filter((row) => row >= 0).map((row) => data.systems[data.systemIndices[row]]);
}
function segmentHeader(unit, place) {
  const [left, right] = unit,
    item = data.items[rows.item[left]];
  const parts = [/^\d+$/.test(item[0]) ? `# ${item[0]}` : named(item[0])];
  if (right < 0)
    parts.push(make("span", { class: "meta" }, named(data.systems[data.systemIndices[left]])));
  if (data.documents[item[1]])
    parts.push(make("span", { class: "meta" }, named(data.documents[item[1]])));
  parts.push(detailsButton(unit, place, item[0]));
  return make("th", { scope: "rowgroup", rowspan: 2 }, ...parts);
}
function detailsButton(unit, place, label) {
  const open = state.open.has(place),
    buttonText = explanations(unit).length ? "Scores, explanations" : "Scores",
    suffix = `of segment ${label}, ${systemNames(unit).join(" and ")}`;
  return make(
    "button",
    {
      type: "button",
      class: "expand",
      "aria-expanded": String(open),
      "aria-controls": open ? `scores-${place}` : null,
      "aria-label": open ? `Close the scores ${suffix}` : `${buttonText} ${suffix}`,
      on: () => toggleDetails(place),
    },
    open ? "Close" : buttonText,
  );
}
const LONG_TEXT = 1000; // characters; longer texts scroll, also by keyboard
const boxAttributes = (style, text, name) =>
  text.length > LONG_TEXT
    ? { class: `${style} long`, role: "region", tabindex: "0", "aria-label": name }
    : { class: style };
function inputTexts(item, width) {
  const texts = [...(item[2] ? [["source", item[2]]] : []), ...item[3].map((t) => ["reference", t])];
  const boxes = texts.map(([kind, text]) =>
    make(
      "div",
      boxAttributes("text muted", text, `${kind} of segment ${item[0]}`),
      make("span", { class: "tag" }, kind),
      make("bdi", { lang: "" }, make("span", {}, ...highlightTerms(text))),
    ),
  );
  return make("td", { colspan: width }, ...boxes);
}
const numberCell = (value, decimals, label, ...more) =>
  make("td", { class: "number", "data-label": label }, formatNumber(value, decimals), ...more);
function scoreCell(row, label) {
  const humanScore = human(row);
  const details = Number.isNaN(humanScore)
    ? []
    : [make("span", { class: "meta" }, `human ${formatNumber(humanScore, data.human.decimals)}`)];
  return numberCell(score(column(), row), column().decimals, label, ...details);
}
function gapCell(unit, label) {
  const gap = difference(unit),
    style = gap > 0 ? "good" : gap < 0 ? "bad" : "";
  const text = Number.isNaN(gap)
    ? "–"
    : `${gap > 0 ? "▲ " : gap < 0 ? "▼ " : ""}${Math.abs(gap).toFixed(column().decimals)}`;
  return make("td", { class: `number ${style}`, "data-label": label }, text);
}
function toggleDetails(place) {
  if (state.open.has(place)) state.open.delete(place);
  else state.open.add(place);
  $(`unit-${place}`).replaceWith(segmentBody(state.found[place], place, visibleColumns()));
  $(`unit-${place}`).querySelector(".expand").focus();
}
function allScores(unitRows) {
  const tableRow = (...cells) => make("tr", {}, ...cells);
  const header = (scope, text, more) => make("th", { scope, ...more }, text);
  const number = (text, more) => make("td", { class: "number", ...more }, text);
  const heads = unitRows.flatMap((row) => [named(data.systems[data.systemIndices[row]]), "rank"]);
  const columns = data.columns.map((metric) => [withArrow(metric), metric]);
  if (data.human) columns.push(["human", data.human]);
  const lines = columns.map(([name, column]) => {
    const cells = unitRows.flatMap((row) => [
      number(formatNumber(score(column, row), column.decimals)),
      number(percent("rank", ranks(column)[row])),
    ]);
    return tableRow(header("row", name), ...cells);
  });
  for (const [key, description] of Object.entries(DISAGREEMENTS)) {
    if (unitRows.every((row) => data[key][row] === null)) continue;
    const shares = unitRows.map((row) => percent(key, rankShare(data[key], row)));
    const cells = shares.map((share) => number(share, { colspan: 2 }));
    lines.push(tableRow(header("row", description), ...cells));
  }
  const headers = heads.map((head) => header("col", head, { class: "number" }));
  const note = "Ranks: from 0 % (worst translation on this page) to 100 % (best).";
  return make(
    "table",
    {},
    make("caption", {}, "All scores"),
    make("thead", {}, tableRow(header("col", "metric"), ...headers)),
    make("tbody", {}, ...lines),
    make("tfoot", {}, tableRow(make("td", { class: "muted", colspan: 1 + heads.length }, note))),
  );
}
function detailsRow(unit, place, width) {
  const table = allScores(unit.filter((row) => row >= 0));
  const explanationBoxes = explanations(unit).map((entry) => {
    const systemName = named(data.systems[entry[1]]);
    const box = make("details", {}, make("summary", {}, `${entry[2]} · `, systemName));
    const fill = () => {
      if (box.open && box.childElementCount === 1) box.append(parseHtml(entry[3]));
    };
    box.addEventListener("toggle", fill);
    return box;
  });
  return make(
    "tr",
    { class: "details", id: `scores-${place}` },
    make(
      "td",
      { colspan: width },
      make("div", { class: "columns" }, table, make("div", {}, ...explanationBoxes)),
    ),
  );
}
function parseHtml(html) {
  // escaped when the report was written
  const holder = make("template");
  holder.innerHTML = html;
  return holder.content;
}
