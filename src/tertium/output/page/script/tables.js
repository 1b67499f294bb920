// Color theme, copy buttons and sortable tables; independent of the segment data.

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

function copyWithSelection(text) {
  const before = document.activeElement,
    area = make("textarea", { class: "hidden", "aria-hidden": "true" });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  before?.focus({ preventScroll: true });
  return done;
}
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyWithSelection(text);
  }
}
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  button.dataset.label ||= button.textContent;
  const message = (await copy(button.dataset.copy)) ? "Copied" : "Copy failed: select the text";
  button.textContent = $("announcement").textContent = message;
  clearTimeout(button.waiting);
  button.waiting = setTimeout(() => {
    button.textContent = button.dataset.label;
    $("announcement").textContent = "";
  }, 1500);
});

// Expand collapsed sections for printing, except long tables.
const MAX_PRINTED_ROWS = 200;
let expandedForPrint = [];
window.addEventListener("beforeprint", () => {
  const closed = [...document.querySelectorAll("#overview details:not([open])")];
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
