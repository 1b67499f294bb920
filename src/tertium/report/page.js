"use strict";
(() => {
  const PER_PAGE = 50;
  const LARGEST = 6e6; // cells of a word comparison; longer texts are compared as bags of words
  const ALL = -1, NONE = -2;
  const $ = (id) => document.getElementById(id);

  /* ---- making elements: texts are always texts, never markup ---- */
  function make(name, attributes, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (key === "on") node.addEventListener("click", value);
      else node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  }
  const option = (value, text) => make("option", { value }, text);

  /* ---- colours, copying, sorting of tables: these need no data ---- */
  const THEMES = ["auto", "light", "dark"];
  function remember(theme) {
    try { if (theme) localStorage.setItem("tertium-theme", theme); else return localStorage.getItem("tertium-theme"); } catch { /* a page from disk may have no storage */ }
    return null;
  }
  function setTheme(theme) {
    if (theme === "auto") document.documentElement.removeAttribute("data-theme");
    else document.documentElement.dataset.theme = theme;
    $("theme").textContent = `Colours: ${theme}`;
  }
  let theme = THEMES.includes(remember()) ? remember() : "auto";
  setTheme(theme);
  $("theme").addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    remember(theme);
    setTheme(theme);
  });

  function copyByHand(text) {
    const area = make("textarea", { "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    const before = button.textContent;
    try { await navigator.clipboard.writeText(button.dataset.copy); } catch { copyByHand(button.dataset.copy); }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = before; }, 1500);
  });

  const cellKey = (row, place) => {
    const cell = row.cells[place];
    return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value);
  };
  function compareKeys(a, b, down) {
    const missing = (value) => value === "" || Number.isNaN(value) || value === "–";
    if (missing(a) || missing(b)) return missing(a) - missing(b);
    const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
    return down ? -order : order;
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    table.tHead.addEventListener("click", (event) => {
      const head = event.target.closest("th[aria-sort]");
      if (!head) return;
      const first = head.classList.contains("number") ? "descending" : "ascending";
      const other = first === "ascending" ? "descending" : "ascending";
      const direction = head.getAttribute("aria-sort") === first ? other : first;
      for (const cell of table.tHead.querySelectorAll("th[aria-sort]")) cell.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", direction);
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => compareKeys(cellKey(a, head.cellIndex), cellKey(b, head.cellIndex), direction === "descending"));
      table.tBodies[0].append(...rows);
    });
  }

  /* ---- the data ---- */
  let data = null, rows = null;
  async function unpack() {
    const packed = atob($("data").textContent);
    const bytes = new Uint8Array(packed.length);
    for (let n = 0; n < packed.length; n++) bytes[n] = packed.charCodeAt(n);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    data = JSON.parse(await new Response(stream).text());
    rows = { item: [], text: [], start: [], words: null };
    data.items.forEach((item, n) => {
      rows.start.push(rows.text.length);
      for (const text of item[4]) { rows.item.push(n); rows.text.push(text); }
    });
    rows.start.push(rows.text.length);
    rows.words = Int32Array.from(rows.text, countWords);
    data.explainedBy = new Map();
    for (const entry of data.explained) {
      if (!data.explainedBy.has(entry[0])) data.explainedBy.set(entry[0], []);
      data.explainedBy.get(entry[0]).push(entry);
    }
  }
  function countWords(text) {
    const found = text.match(/\S+/g);
    return found ? found.length : 0;
  }
  function rowOf(item, system) {
    for (let row = rows.start[item]; row < rows.start[item + 1]; row++) if (data.systemOf[row] === system) return row;
    return -1;
  }
  const scaled = (value, decimals) => (value === null || value === undefined ? NaN : value / 10 ** decimals);
  const score = (column, row) => (row < 0 ? NaN : scaled(column.values[row], column.decimals));
  const human = (row) => (row < 0 || !data.human ? NaN : scaled(data.human.values[row], data.human.decimals));
  const shown = (value, decimals) => (Number.isNaN(value) ? "–" : value.toFixed(decimals));
  const perMille = (values, row) => (row < 0 || values[row] === null ? NaN : values[row] / 1000);
  const larger = (a, b) => (Number.isNaN(a) ? b : Number.isNaN(b) ? a : Math.max(a, b));

  /* ---- what is asked for ---- */
  const state = { page: 0, found: [], open: new Set() };
  const chosen = (id) => Number($(id).value);
  const column = () => data.columns[chosen("metric")];
  const paired = () => chosen("left") >= 0 && chosen("right") >= 0;

  const KEYS = {
    number: ([left]) => left,
    left: ([left]) => score(column(), left),
    right: ([, right]) => score(column(), right),
    difference: (unit) => difference(unit),
    apart: (unit) => Math.abs(difference(unit)),
    length: ([left]) => rows.words[left],
    spread: ([left, right]) => larger(perMille(data.spread, left), perMille(data.spread, right)),
    misfit: ([left, right]) => larger(Math.abs(perMille(data.misfit, left)), Math.abs(perMille(data.misfit, right))),
    human: ([left]) => human(left),
  };
  const PARTIAL = ["spread", "misfit", "human"]; // what has none of these is not an answer
  function difference([left, right]) { // above 0: the first is better
    const gap = score(column(), left) - score(column(), right);
    return column().up ? gap : -gap;
  }
  function candidates() {
    const left = chosen("left"), right = chosen("right"), units = [];
    if (paired()) {
      for (let item = 0; item < data.items.length; item++) {
        const pair = [rowOf(item, left), rowOf(item, right)];
        if (pair[0] >= 0 && pair[1] >= 0) units.push(pair);
      }
      return units;
    }
    for (let row = 0; row < rows.text.length; row++) if (left < 0 || data.systemOf[row] === left) units.push([row, -1]);
    return units;
  }
  const folded = (text) => text.normalize("NFC").toLowerCase();
  function searchable(unit) {
    rows.folded ||= rows.text.map(folded);
    data.folded ||= data.items.map((item) => folded([item[0], item[2], ...item[3]].join("\n")));
    const right = unit[1] < 0 ? "" : rows.folded[unit[1]];
    return `${data.folded[rows.item[unit[0]]]}\n${rows.folded[unit[0]]}\n${right}`;
  }
  const terms = () => folded($("query").value).split(/\s+/).filter(Boolean);
  function wanted() {
    const tests = [], words = terms();
    if (words.length) tests.push((unit) => { const text = searchable(unit); return words.every((word) => text.includes(word)); });
    const gap = parseFloat($("gap").value), short = parseFloat($("shortest").value), long = parseFloat($("longest").value);
    if (gap > 0 && paired()) tests.push((unit) => Math.abs(difference(unit)) >= gap);
    if (short > 0) tests.push(([left]) => rows.words[left] >= short);
    if (!Number.isNaN(long)) tests.push(([left]) => rows.words[left] <= long);
    const warning = chosen("warning"), mask = warning === ALL ? ~0 : 1 << warning;
    const warned = (row) => row >= 0 && (data.warned[row] & mask) !== 0;
    if (warning !== NONE) tests.push(([left, right]) => warned(left) || warned(right));
    if (chosen("document") >= 0) tests.push(([left]) => data.items[rows.item[left]][1] === chosen("document"));
    if ($("only").checked) tests.push((unit) => explanations(unit).length > 0);
    return tests;
  }
  function explanations([left, right]) {
    const systems = [-1, data.systemOf[left], right < 0 ? -1 : data.systemOf[right]];
    return (data.explainedBy.get(rows.item[left]) || []).filter((entry) => systems.includes(entry[1]));
  }
  function find() {
    const tests = wanted(), key = KEYS[$("sort").value], down = $("order").value === "down";
    const found = candidates().filter((unit) => tests.every((test) => test(unit)));
    let keyed = found.map((unit) => [key(unit), unit]);
    if (PARTIAL.includes($("sort").value)) keyed = keyed.filter((entry) => !Number.isNaN(entry[0]));
    keyed.sort((a, b) => compareKeys(a[0], b[0], down) || a[1][0] - b[1][0]);
    state.found = keyed.map((entry) => entry[1]);
    state.page = 0;
    state.open.clear();
    adapt();
    render();
  }
  function adapt() { // what makes no sense for one system alone, or without people, cannot be chosen
    const pair = paired();
    for (const choice of $("sort").options) {
      if (["right", "difference", "apart"].includes(choice.value)) choice.disabled = !pair;
      if (["misfit", "human"].includes(choice.value)) choice.disabled = !data.human;
      if (choice.value === "spread") choice.disabled = data.columns.length < 2;
    }
    $("gap").disabled = !pair;
    $("right").disabled = chosen("left") === ALL;
  }

  /* ---- texts with their differences marked ---- */
  // Words are separated by blanks; scripts without blanks are compared sign by sign.
  const TOKEN = /\s+|[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]\p{M}*|[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]+/gu;
  const tokens = (text) => text.match(TOKEN) || [];
  const isBlank = (token) => /^\s+$/.test(token);
  function common(a, b) { // the places in a of a longest common subsequence with b
    const n = a.length, m = b.length, kept = new Set();
    if ((n + 1) * (m + 1) > LARGEST) {
      const bag = new Map();
      for (const word of b) bag.set(word, (bag.get(word) || 0) + 1);
      a.forEach((word, place) => { if (bag.get(word) > 0) { bag.set(word, bag.get(word) - 1); kept.add(place); } });
      return kept;
    }
    const width = m + 1, table = new Uint16Array((n + 1) * width);
    for (let i = n - 1; i >= 0; i--) for (let j = m - 1; j >= 0; j--) {
      table[i * width + j] = a[i] === b[j] ? table[(i + 1) * width + j + 1] + 1 : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
    }
    for (let i = 0, j = 0; i < n && j < m;) {
      if (a[i] === b[j]) { kept.add(i); i++; j++; }
      else if (table[(i + 1) * width + j] >= table[i * width + j + 1]) i++;
      else j++;
    }
    return kept;
  }
  function highlighted(text) {
    const words = terms();
    if (!words.length) return [text];
    const pattern = new RegExp(words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|"), "giu");
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
    const kept = common(ours.filter((t) => !isBlank(t)), tokens(other).filter((t) => !isBlank(t)));
    const parts = [];
    let place = 0, run = "", gap = ""; // words that differ one after the other are marked as one
    const flush = () => { if (run) parts.push(make(name, { class: "word" }, ...highlighted(run))); if (gap) parts.push(gap); run = gap = ""; };
    for (const token of ours) {
      if (isBlank(token)) gap += token;
      else if (kept.has(place++)) { flush(); parts.push(...highlighted(token)); }
      else { if (run) run += gap; else if (gap) parts.push(gap); run += token; gap = ""; }
    }
    flush();
    return parts;
  }
  function nearest(text, references) { // the reference that shares most words, in order
    if (references.length < 2) return references.length ? references[0] : null;
    const words = tokens(text).filter((t) => !isBlank(t));
    const shared = references.map((other) => common(words, tokens(other).filter((t) => !isBlank(t))).size);
    return references[most(shared)];
  }
  const textBox = (parts) => make("div", { class: "text", dir: "auto" }, ...parts);

  /* ---- the table ---- */
  const MOST_METRICS = 5; // beside a translation; the others are shown when it is unfolded
  function metricsShown() {
    const first = data.columns.map((_, n) => n).slice(0, MOST_METRICS);
    return first.includes(chosen("metric")) || !data.columns.length ? first : [...first.slice(0, -1), chosen("metric")];
  }
  function columnsShown() { // title, sort key, style, metric
    const metric = chosen("metric"), id = ["segment", "number", "id"];
    if (paired()) {
      const names = [data.systems[chosen("left")], data.systems[chosen("right")]];
      return [id, [names[0], null, "output"], [names[1], null, "output"], [names[0], "left", "number", metric], [names[1], "right", "number", metric], ["difference", "difference", "number", metric]];
    }
    const scores = metricsShown().map((n) => [`${data.columns[n].name} ${data.columns[n].up ? "↑" : "↓"}`, "left", "number", n]);
    return [id, ["translation", null, "output"], ...scores, ...(data.human ? [["human", "human", "number"]] : [])];
  }
  function header(columns) {
    const sort = $("sort").value, down = $("order").value === "down";
    const cells = columns.map(([title, key, style, metric]) => {
      if (!key) return make("th", { scope: "col", class: style }, title);
      const active = sort === key && (metric === undefined || metric === chosen("metric"));
      const direction = active ? (down ? "descending" : "ascending") : "none";
      const name = metric === undefined ? key : `${key}-${metric}`;
      return make("th", { scope: "col", class: style, "aria-sort": direction }, make("button", { type: "button", "data-sort": name, on: () => sortBy(key, metric, active, name) }, title));
    });
    return make("thead", {}, make("tr", {}, ...cells));
  }
  function sortBy(key, metric, active, name) {
    $("order").value = active ? ($("order").value === "down" ? "up" : "down") : key === "number" ? "up" : "down";
    $("sort").value = key;
    if (metric !== undefined) $("metric").value = metric;
    press("");
    find();
    const again = document.querySelector(`#results button[data-sort="${name}"]`);
    if (again) again.focus();
  }
  function render() {
    const pair = paired(), metric = column() ? column().name : "score", results = $("results");
    const total = state.found.length, pages = Math.max(1, Math.ceil(total / PER_PAGE));
    state.page = Math.min(Math.max(state.page, 0), pages - 1);
    const from = state.page * PER_PAGE, shownUnits = state.found.slice(from, from + PER_PAGE);
    $("count").textContent = total ? `${total.toLocaleString("en")} ${pair ? "segment" : "translation"}${total === 1 ? "" : "s"} found; ${(from + 1).toLocaleString("en")} to ${(from + shownUnits.length).toLocaleString("en")} shown` : "Nothing found: loosen a filter.";
    $("page").value = state.page + 1;
    $("page").max = pages;
    $("of").textContent = `of ${pages.toLocaleString("en")}`;
    $("previous").disabled = state.page === 0;
    $("next").disabled = state.page >= pages - 1;
    const columns = columnsShown();
    const widths = make("colgroup", {}, ...columns.map((entry) => make("col", { class: entry[2] === "number" ? "score" : entry[2] })));
    const caption = make("caption", {}, pair ? `${columns[1][0]} beside ${columns[2][0]}, ${metric}` : "Translations and their scores");
    const table = make("table", { class: "segments sortable" }, caption, widths, header(columns));
    shownUnits.forEach((unit, n) => table.append(segment(unit, from + n, columns)));
    results.replaceChildren(total ? table : make("p", { class: "empty" }, "Nothing found."));
  }
  function segment(unit, place, columns) {
    const width = columns.length;
    const [left, right] = unit, pair = right >= 0, item = data.items[rows.item[left]];
    const body = make("tbody", { id: `unit-${place}` });
    body.append(make("tr", { class: "given" }, identity(unit, place, pair), given(item, width - 1)));
    const other = pair ? rows.text[right] : nearest(rows.text[left], item[3]);
    const cells = [make("td", { class: "output", "data-label": pair ? data.systems[data.systemOf[left]] : "" }, textBox(marked(rows.text[left], other, pair ? "del" : "ins")))];
    if (pair) cells.push(make("td", { class: "output", "data-label": data.systems[data.systemOf[right]] }, textBox(marked(rows.text[right], rows.text[left], "ins"))));
    if (pair) cells.push(figures(left), figures(right), gapCell(unit));
    else for (const [title, key, , metric] of columns.slice(2)) cells.push(key === "human" ? figure(human(left), data.human.decimals, title) : figure(score(data.columns[metric], left), data.columns[metric].decimals, title));
    body.append(make("tr", {}, ...cells));
    if (state.open.has(place)) body.append(unfolded(unit, place, width));
    return body;
  }
  function identity(unit, place, pair) {
    const [left, right] = unit, item = data.items[rows.item[left]], open = state.open.has(place);
    const label = /^\d+$/.test(item[0]) ? `# ${item[0]}` : item[0];
    const parts = [label];
    if (!pair) parts.push(make("span", { class: "where" }, data.systems[data.systemOf[left]]));
    if (data.documents[item[1]]) parts.push(make("span", { class: "where" }, data.documents[item[1]]));
    const bits = (data.warned[left] || 0) | (right < 0 ? 0 : data.warned[right] || 0);
    data.warnings.forEach((kind, n) => { if (bits & (1 << n)) parts.push(make("span", { class: "badge" }, kind)); });
    const why = explanations(unit).length ? "Scores, explained" : "Scores";
    parts.push(make("button", { type: "button", class: "unfold", "aria-expanded": String(open), "aria-controls": `unit-${place}`, on: () => toggle(place) }, open ? "Close" : why));
    return make("th", { scope: "rowgroup", rowspan: 2 }, ...parts);
  }
  function given(item, width) {
    const lines = [];
    if (item[2]) lines.push(make("p", {}, make("span", { class: "tag" }, "source"), make("bdi", {}, ...highlighted(item[2]))));
    item[3].forEach((text) => lines.push(make("p", {}, make("span", { class: "tag" }, "reference"), make("bdi", {}, ...highlighted(text)))));
    return make("td", { colspan: width }, make("div", { class: "text muted" }, ...lines));
  }
  const figure = (value, decimals, label, ...more) => make("td", { class: "number", "data-label": label }, shown(value, decimals), ...more);
  function figures(row) {
    const people = human(row), label = data.systems[data.systemOf[row]];
    const said = Number.isNaN(people) ? [] : [make("span", { class: "where" }, `human ${shown(people, data.human.decimals)}`)];
    return figure(score(column(), row), column().decimals, label, ...said);
  }
  function gapCell(unit) {
    const gap = difference(unit), style = gap > 0 ? "good" : gap < 0 ? "bad" : "";
    const text = Number.isNaN(gap) ? "–" : `${gap > 0 ? "▲ " : gap < 0 ? "▼ " : ""}${Math.abs(gap).toFixed(column().decimals)}`;
    return make("td", { class: `number ${style}`, "data-label": "difference" }, text);
  }
  function toggle(place) {
    if (state.open.has(place)) state.open.delete(place); else state.open.add(place);
    $(`unit-${place}`).replaceWith(segment(state.found[place], place, columnsShown()));
    $(`unit-${place}`).querySelector(".unfold").focus();
  }
  function unfolded(unit, place, width) {
    const used = unit.filter((row) => row >= 0);
    const head = make("tr", {}, make("th", { scope: "col" }, "metric"), ...used.map((row) => make("th", { scope: "col", class: "number" }, data.systems[data.systemOf[row]])));
    const lines = data.columns.map((metric) => make("tr", {}, make("th", { scope: "row" }, `${metric.name} ${metric.up ? "↑" : "↓"}`), ...used.map((row) => make("td", { class: "number" }, shown(score(metric, row), metric.decimals)))));
    if (data.human) lines.push(make("tr", {}, make("th", { scope: "row" }, "human"), ...used.map((row) => make("td", { class: "number" }, shown(human(row), data.human.decimals)))));
    const derived = [["ranks of metrics apart", data.spread], ["rank of metrics less people's", data.misfit]];
    for (const [name, values] of derived) if (used.some((row) => values[row] !== null)) lines.push(make("tr", {}, make("th", { scope: "row", class: "muted" }, name), ...used.map((row) => make("td", { class: "number muted" }, shown(100 * perMille(values, row), 0) + " %"))));
    const table = make("table", {}, make("caption", {}, "All scores"), make("thead", {}, head), make("tbody", {}, ...lines));
    const why = explanations(unit).map((entry, n) => {
      const who = entry[1] < 0 ? "all systems" : data.systems[entry[1]];
      const box = make("details", {}, make("summary", {}, `${entry[2]} · ${who}`));
      const fill = () => { if (box.open && box.childElementCount === 1) box.append(fragment(entry[3])); };
      box.addEventListener("toggle", fill);
      return box;
    });
    return make("tr", { class: "unfolded" }, make("td", { colspan: width }, make("div", { class: "columns" }, table, make("div", {}, ...why))));
  }
  function fragment(html) { // made and escaped when the report was written
    const holder = make("template");
    holder.innerHTML = html;
    return holder.content;
  }

  /* ---- questions, links, pages ---- */
  const most = (values) => { let best = 0; values.forEach((value, n) => { if (value > values[best] || Number.isNaN(values[best])) best = n; }); return best; };
  function clear() {
    for (const id of ["query", "gap", "shortest", "longest"]) $(id).value = "";
    $("warning").value = NONE;
    $("document").value = ALL;
    $("only").checked = false;
  }
  const ANSWERS = {
    metrics: () => { everySystem(); sortOn("spread"); },
    people: () => { everySystem(); sortOn("misfit"); },
    systems: () => { if (!paired()) twoSystems(); sortOn("apart"); },
    warned: () => { everySystem(); sortOn("number", "up"); $("warning").value = ALL; },
    explained: () => { everySystem(); sortOn("number", "up"); $("only").checked = true; },
    all: () => sortOn("number", "up"),
  };
  function everySystem() { $("left").value = ALL; $("right").value = NONE; }
  function twoSystems() { // the best and the worst by mean rank of the chosen metric
    const means = data.systems.map((_, system) => {
      const own = data.systemOf.flatMap((s, row) => (s === system && column().values[row] !== null ? [column().values[row]] : []));
      return (column().up ? 1 : -1) * own.reduce((sum, value) => sum + value, 0) / Math.max(own.length, 1);
    });
    const counts = data.systems.map((_, system) => data.systemOf.reduce((n, s) => n + (s === system), 0));
    const enough = Math.max(...counts) / 2;
    means.forEach((_, system) => { if (counts[system] < enough) means[system] = NaN; });
    const best = most(means), worst = most(means.map((value) => -value));
    $("left").value = best;
    $("right").value = best === worst ? (best + 1) % data.systems.length : worst;
  }
  function sortOn(key, order = "down") { $("sort").value = key; $("order").value = order; }
  function ask(name) {
    clear();
    ANSWERS[name]();
    press(name);
    find();
  }
  function press(name) {
    for (const button of document.querySelectorAll("[data-ask]")) button.setAttribute("aria-pressed", String(button.dataset.ask === name));
  }
  function show(row) { // one translation among all, unfolded
    clear();
    everySystem();
    sortOn("number", "up");
    press("");
    find();
    const place = state.found.findIndex((unit) => unit[0] === row);
    if (place < 0) return;
    state.page = Math.floor(place / PER_PAGE);
    state.open.add(place);
    render();
    const body = $(`unit-${place}`);
    body.scrollIntoView({ block: "center" });
    body.querySelector(".unfold").focus({ preventScroll: true });
  }
  function follow() {
    const found = /^#segment-(\d+)$/.exec(location.hash);
    if (found && Number(found[1]) >= 1 && Number(found[1]) <= data.items.length) show(rows.start[Number(found[1]) - 1]);
  }
  function turn(page) { state.page = page; render(); $("results").scrollIntoView({ block: "start" }); $("results").focus({ preventScroll: true }); }

  function fill() {
    const several = data.systems.length > 1;
    $("left").append(option(ALL, "all systems"), ...data.systems.map((name, n) => option(n, name)));
    $("right").append(option(NONE, "nothing"), ...data.systems.map((name, n) => option(n, name)));
    $("metric").append(...data.columns.map((metric, n) => option(n, metric.name)));
    $("warning").append(option(NONE, "whatever"), option(ALL, "any warning"), ...data.warnings.map((kind, n) => option(n, kind)));
    $("document").append(option(ALL, "all documents"), ...data.documents.flatMap((name, n) => (name ? [option(n, name)] : [])));
    $("document").disabled = !data.documents.some(Boolean);
    $("warning").disabled = !data.warnings.length;
    $("only").disabled = !data.explained.length;
    if (several && data.columns.length) twoSystems(); else everySystem();
    if (candidates().length * 2 < data.items.length) everySystem();
    const off = { people: !data.human, metrics: data.columns.length < 2, systems: !several, warned: !data.warnings.length, explained: !data.explained.length };
    for (const button of document.querySelectorAll("[data-ask]")) {
      button.disabled = Boolean(off[button.dataset.ask]);
      button.setAttribute("aria-pressed", "false");
      button.addEventListener("click", () => ask(button.dataset.ask));
    }
  }
  function listen() {
    let waiting = 0;
    $("query").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(find, 120); });
    $("controls").addEventListener("change", (event) => { if (event.target.id !== "query") { press(""); find(); } });
    $("controls").addEventListener("submit", (event) => { event.preventDefault(); find(); });
    $("previous").addEventListener("click", () => turn(state.page - 1));
    $("next").addEventListener("click", () => turn(state.page + 1));
    $("page").addEventListener("change", () => turn(Number($("page").value) - 1));
    document.addEventListener("click", (event) => {
      const dot = event.target.closest("circle[data-row]");
      if (dot) show(Number(dot.dataset.row));
    });
    window.addEventListener("hashchange", follow);
  }
  async function start() {
    if (typeof DecompressionStream === "undefined") {
      $("loading").textContent = "This browser cannot unpack the segments; one of 2023 or later can.";
      return;
    }
    await unpack();
    if (!data.items.length) {
      $("loading").textContent = "This report is about whole systems: there are no segments to look at.";
      document.documentElement.dataset.ready = "1";
      return;
    }
    fill();
    sortOn("number", "up");
    listen();
    find();
    $("loading").remove();
    $("browser").hidden = false;
    follow();
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
  }
  // After the first paint: the overview is there at once, however many segments follow.
  requestAnimationFrame(() => setTimeout(start, 0));
})();
