// What was found, as a table of segments that unfold.

const MOST_METRICS = 5; // beside a translation; the others are shown when it is unfolded
function metricsShown() {
  const first = data.columns.map((_, n) => n).slice(0, MOST_METRICS);
  return first.includes(chosen("metric")) || !data.columns.length
    ? first
    : [...first.slice(0, -1), chosen("metric")];
}
function columnsShown() {
  // title, sort key, style, metric
  const metric = chosen("metric"),
    id = ["segment", "number", "id"];
  if (paired()) {
    const names = [data.systems[chosen("left")], data.systems[chosen("right")]];
    return [
      id,
      [names[0], null, "output"],
      [names[1], null, "output"],
      [names[0], "left", "number", metric],
      [names[1], "right", "number", metric],
      ["difference", "difference", "number", metric],
    ];
  }
  const scores = metricsShown().map((n) => [
    `${data.columns[n].name} ${data.columns[n].up ? "↑" : "↓"}`,
    "left",
    "number",
    n,
  ]);
  return [
    id,
    ["translation", null, "output"],
    ...scores,
    ...(data.human ? [["human", "human", "number"]] : []),
  ];
}
function header(columns) {
  const sort = $("sort").value,
    down = $("order").value === "down";
  const cells = columns.map(([title, key, style, metric]) => {
    if (!key) return make("th", { scope: "col", class: style }, title);
    const active = sort === key && (metric === undefined || metric === chosen("metric"));
    const direction = active ? (down ? "descending" : "ascending") : "none";
    const name = metric === undefined ? key : `${key}-${metric}`;
    return make(
      "th",
      { scope: "col", class: style, "aria-sort": direction },
      make(
        "button",
        { type: "button", "data-sort": name, on: () => sortBy(key, metric, active, name) },
        title,
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
    ...columns.map((entry) => make("col", { class: entry[2] === "number" ? "score" : entry[2] })),
  );
  const caption = make(
    "caption",
    {},
    pair ? `${columns[1][0]} beside ${columns[2][0]}, ${metric}` : "Translations and their scores",
  );
  const table = make("table", { class: "segments sortable" }, caption, widths, header(columns));
  shownUnits.forEach((unit, n) => table.append(segment(unit, from + n, columns)));
  results.replaceChildren(total ? table : make("p", { class: "empty" }, "Nothing found."));
}
function segment(unit, place, columns) {
  const width = columns.length;
  const [left, right] = unit,
    pair = right >= 0,
    item = data.items[rows.item[left]];
  const body = make("tbody", { id: `unit-${place}` });
  body.append(make("tr", { class: "given" }, identity(unit, place, pair), given(item, width - 1)));
  const other = pair ? rows.text[right] : nearest(rows.text[left], item[3]);
  const cells = [
    make(
      "td",
      { class: "output", "data-label": pair ? data.systems[data.systemOf[left]] : "" },
      textBox(rows.text[left], marked(rows.text[left], other, pair ? "del" : "ins")),
    ),
  ];
  if (pair)
    cells.push(
      make(
        "td",
        { class: "output", "data-label": data.systems[data.systemOf[right]] },
        textBox(rows.text[right], marked(rows.text[right], rows.text[left], "ins")),
      ),
    );
  if (pair) cells.push(figures(left), figures(right), gapCell(unit));
  else
    for (const [title, key, , metric] of columns.slice(2))
      cells.push(
        key === "human"
          ? figure(human(left), data.human.decimals, title)
          : figure(score(data.columns[metric], left), data.columns[metric].decimals, title),
      );
  body.append(make("tr", {}, ...cells));
  if (state.open.has(place)) body.append(unfolded(unit, place, width));
  return body;
}
function identity(unit, place, pair) {
  const [left, right] = unit,
    item = data.items[rows.item[left]],
    open = state.open.has(place);
  const label = /^\d+$/.test(item[0]) ? `# ${item[0]}` : item[0];
  const parts = [label];
  if (!pair) parts.push(make("span", { class: "where" }, data.systems[data.systemOf[left]]));
  if (data.documents[item[1]])
    parts.push(make("span", { class: "where" }, data.documents[item[1]]));
  const bits = (data.warned[left] || 0) | (right < 0 ? 0 : data.warned[right] || 0);
  data.warnings.forEach((kind, n) => {
    if (bits & (1 << n)) parts.push(make("span", { class: "badge" }, kind));
  });
  const why = explanations(unit).length ? "Scores, explained" : "Scores";
  parts.push(
    make(
      "button",
      {
        type: "button",
        class: "unfold",
        "aria-expanded": String(open),
        "aria-controls": `unit-${place}`,
        on: () => toggle(place),
      },
      open ? "Close" : why,
    ),
  );
  return make("th", { scope: "rowgroup", rowspan: 2 }, ...parts);
}
const LONG = 3000; // characters from which a text surely fills its box
function textBox(text, parts) {
  // the parts in one element: where a direction is found from the text, adding many is slow
  const style = text.length > LONG ? "text long" : "text";
  return make("div", { class: style, dir: "auto" }, make("span", {}, ...parts));
}
function given(item, width) {
  const lines = [];
  if (item[2])
    lines.push(
      make(
        "p",
        {},
        make("span", { class: "tag" }, "source"),
        make("bdi", {}, make("span", {}, ...highlighted(item[2]))),
      ),
    );
  item[3].forEach((text) =>
    lines.push(
      make(
        "p",
        {},
        make("span", { class: "tag" }, "reference"),
        make("bdi", {}, make("span", {}, ...highlighted(text))),
      ),
    ),
  );
  return make("td", { colspan: width }, make("div", { class: "text muted" }, ...lines));
}
const figure = (value, decimals, label, ...more) =>
  make("td", { class: "number", "data-label": label }, shown(value, decimals), ...more);
function figures(row) {
  const people = human(row),
    label = data.systems[data.systemOf[row]];
  const said = Number.isNaN(people)
    ? []
    : [make("span", { class: "where" }, `human ${shown(people, data.human.decimals)}`)];
  return figure(score(column(), row), column().decimals, label, ...said);
}
function gapCell(unit) {
  const gap = difference(unit),
    style = gap > 0 ? "good" : gap < 0 ? "bad" : "";
  const text = Number.isNaN(gap)
    ? "–"
    : `${gap > 0 ? "▲ " : gap < 0 ? "▼ " : ""}${Math.abs(gap).toFixed(column().decimals)}`;
  return make("td", { class: `number ${style}`, "data-label": "difference" }, text);
}
function toggle(place) {
  if (state.open.has(place)) state.open.delete(place);
  else state.open.add(place);
  $(`unit-${place}`).replaceWith(segment(state.found[place], place, columnsShown()));
  $(`unit-${place}`).querySelector(".unfold").focus();
}
function unfolded(unit, place, width) {
  const used = unit.filter((row) => row >= 0);
  const head = make(
    "tr",
    {},
    make("th", { scope: "col" }, "metric"),
    ...used.map((row) =>
      make("th", { scope: "col", class: "number" }, data.systems[data.systemOf[row]]),
    ),
  );
  const lines = data.columns.map((metric) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, `${metric.name} ${metric.up ? "↑" : "↓"}`),
      ...used.map((row) =>
        make("td", { class: "number" }, shown(score(metric, row), metric.decimals)),
      ),
    ),
  );
  if (data.human)
    lines.push(
      make(
        "tr",
        {},
        make("th", { scope: "row" }, "human"),
        ...used.map((row) =>
          make("td", { class: "number" }, shown(human(row), data.human.decimals)),
        ),
      ),
    );
  const derived = [
    ["ranks of metrics apart", data.spread],
    ["rank of metrics less people's", data.misfit],
  ];
  for (const [name, values] of derived)
    if (used.some((row) => values[row] !== null))
      lines.push(
        make(
          "tr",
          {},
          make("th", { scope: "row", class: "muted" }, name),
          ...used.map((row) =>
            make("td", { class: "number muted" }, shown(100 * perMille(values, row), 0) + " %"),
          ),
        ),
      );
  const table = make(
    "table",
    {},
    make("caption", {}, "All scores"),
    make("thead", {}, head),
    make("tbody", {}, ...lines),
  );
  const why = explanations(unit).map((entry, n) => {
    const who = entry[1] < 0 ? "all systems" : data.systems[entry[1]];
    const box = make("details", {}, make("summary", {}, `${entry[2]} · ${who}`));
    const fill = () => {
      if (box.open && box.childElementCount === 1) box.append(fragment(entry[3]));
    };
    box.addEventListener("toggle", fill);
    return box;
  });
  return make(
    "tr",
    { class: "unfolded" },
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
