// Colours, copying and the sorting of tables, none of which needs the data.

const sayTheme = () => {
  $("theme").textContent = `Colours: ${theme}`;
};
sayTheme();
$("theme").addEventListener("click", () => {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  remember(theme);
  setTheme(theme);
  sayTheme();
});

function copyByHand(text) {
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
    return copyByHand(text);
  }
}
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  button.dataset.label ||= button.textContent;
  const said = (await copy(button.dataset.copy)) ? "Copied" : "Not copied: select the text";
  button.textContent = $("said").textContent = said;
  clearTimeout(button.waiting);
  button.waiting = setTimeout(() => {
    button.textContent = button.dataset.label;
    $("said").textContent = "";
  }, 1500);
});

// Nothing can be opened on paper: what is short is open there.
const SHORT = 200; // rows
let unfoldedForPaper = [];
window.addEventListener("beforeprint", () => {
  const closed = [...document.querySelectorAll("#overview details:not([open])")];
  unfoldedForPaper = closed.filter((box) => box.querySelectorAll("tr").length <= SHORT);
  for (const box of unfoldedForPaper) box.open = true;
});
window.addEventListener("afterprint", () => {
  for (const box of unfoldedForPaper) box.open = false;
});

const cellKey = (row, place) => {
  const cell = row.cells[place];
  return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value);
};
const inWords = new Intl.Collator("en", { numeric: true }); // document 2 before document 10
function compareKeys(a, b, down) {
  const missing = (value) => value === "" || Number.isNaN(value) || value === "–";
  if (missing(a) || missing(b)) return missing(a) - missing(b);
  const order =
    typeof a === "number" && typeof b === "number" ? a - b : inWords.compare(String(a), String(b));
  return down ? -order : order;
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
