// Color theme, and tables that the reader sorts and filters; independent of the segment data.

const showTheme = () => {
  $("theme").textContent = `Theme: ${theme}`;
};
showTheme();
$("theme").addEventListener("click", () => {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  storedTheme(theme);
  setTheme(theme);
  showTheme();
});

// Expand collapsed sections for printing, except long tables.
const MAX_PRINTED_ROWS = 200;
let expandedForPrint = [];
window.addEventListener("beforeprint", () => {
  const closed = [...document.querySelectorAll("main > section > details:not([open])")];
  expandedForPrint = closed.filter((box) => box.querySelectorAll("tr").length <= MAX_PRINTED_ROWS);
  for (const box of expandedForPrint) box.open = true;
});
window.addEventListener("afterprint", () => {
  for (const box of expandedForPrint) box.open = false;
});

const cellKey = (row, place) => {
  const cell = row.cells[place];
  return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value);
};
const collator = new Intl.Collator("en", { numeric: true }); // document 2 before document 10
function compareKeys(a, b, descending) {
  const isMissing = (value) => value === "" || Number.isNaN(value) || value === "–";
  if (isMissing(a) || isMissing(b)) return isMissing(a) - isMissing(b);
  const order =
    typeof a === "number" && typeof b === "number" ? a - b : collator.compare(String(a), String(b));
  return descending ? -order : order;
}
for (const table of document.querySelectorAll("table.sortable")) {
  table.tHead.addEventListener("click", (event) => {
    const head = event.target.closest("th[aria-sort]");
    if (!head) return;
    const first = head.classList.contains("number") ? "descending" : "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    const direction = head.getAttribute("aria-sort") === first ? other : first;
    for (const cell of table.tHead.querySelectorAll("th[aria-sort]"))
      cell.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", direction);
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) =>
      compareKeys(
        cellKey(a, head.cellIndex),
        cellKey(b, head.cellIndex),
        direction === "descending",
      ),
    );
    table.tBodies[0].append(...rows);
  });
}

// A search field, and a selection list for each filtered column with several values.
const MIN_FILTERED_ROWS = 6;
function addFilters(table) {
  const rows = [...table.tBodies[0].rows];
  if (rows.length < MIN_FILTERED_ROWS) return;
  const query = make("input", { type: "search", autocomplete: "off" });
  const count = make("p", { class: "note", role: "status" });
  const form = make("form", { class: "controls", role: "search", "aria-label": "Filter rows" });
  form.append(make("label", { class: "wide" }, "Search", query));
  const lists = [];
  for (const place of table.dataset.filters.split(" ").map(Number)) {
    const values = new Set(rows.map((row) => row.cells[place].textContent).filter(Boolean));
    if (values.size < 2) continue;
    const list = make("select", {}, option("", "all"));
    list.append(...[...values].sort(collator.compare).map((value) => option(value, value)));
    const name = table.tHead.rows[0].cells[place].textContent;
    form.append(make("label", {}, name[0].toUpperCase() + name.slice(1), list));
    lists.push([place, list]);
  }
  const update = () => {
    const words = query.value.toLowerCase();
    for (const row of rows)
      row.hidden =
        lists.some(([place, { value }]) => value && row.cells[place].textContent !== value) ||
        !row.textContent.toLowerCase().includes(words);
    const visible = rows.filter((row) => !row.hidden).length;
    count.textContent = `${visible === rows.length ? "" : `${visible} of `}${rows.length} rows`;
  };
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  table.parentNode.before(form, count);
  update();
}
document.querySelectorAll("table[data-filters]").forEach(addFilters);
if (!$("browser")) document.documentElement.dataset.ready = "true";
