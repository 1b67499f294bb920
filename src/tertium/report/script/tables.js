// Colours, copying and the sorting of tables, none of which needs the data.

const THEMES = ["auto", "light", "dark"];
function remember(theme) {
  try {
    if (theme) localStorage.setItem("tertium-theme", theme);
    else return localStorage.getItem("tertium-theme");
  } catch {
    /* a page from disk may have no storage */
  }
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
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
  } catch {
    copyByHand(button.dataset.copy);
  }
  button.textContent = "Copied";
  setTimeout(() => {
    button.textContent = before;
  }, 1500);
});

const cellKey = (row, place) => {
  const cell = row.cells[place];
  return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value);
};
function compareKeys(a, b, down) {
  const missing = (value) => value === "" || Number.isNaN(value) || value === "–";
  if (missing(a) || missing(b)) return missing(a) - missing(b);
  const order =
    typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
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
