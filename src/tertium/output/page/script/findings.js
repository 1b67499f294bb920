// Filter the rows of findings by text and by the values of the selection lists.

const findingRows = [...document.querySelectorAll("#findings tbody tr")];
const filters = [...document.querySelectorAll("#controls select")];
function filterFindings() {
  const query = $("query").value.toLowerCase();
  let shown = 0;
  for (const row of findingRows) {
    const isChosen = filters.every((box) => !box.value || row.dataset[box.id] === box.value);
    row.hidden = !isChosen || (query !== "" && !row.textContent.toLowerCase().includes(query));
    shown += !row.hidden;
  }
  const total = findingRows.length;
  $("count").textContent =
    `${shown === total ? total : `${shown} of ${total}`} ${$("count").dataset.unit}`;
}
$("controls").addEventListener("input", filterFindings);
$("controls").addEventListener("submit", (event) => event.preventDefault());
filterFindings();
document.documentElement.dataset.ready = "true";
