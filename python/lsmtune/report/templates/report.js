"use strict";
// Sorting and copying are all that a page does; without scripts it says the same.
(function () {
  function keyOf(row, column) {
    const cell = row.cells[column];
    const key = cell.dataset.key !== undefined ? cell.dataset.key : cell.textContent.trim();
    return key === "" ? null : isNaN(key) ? key : Number(key);
  }

  function sortBy(header, ascending) {
    const table = header.closest("table");
    const sign = ascending ? 1 : -1;
    const column = header.cellIndex;
    const rows = [...table.tBodies[0].rows].sort((one, other) => {
      const a = keyOf(one, column), b = keyOf(other, column);
      if (a === null || b === null) return (a === null) - (b === null);
      if (typeof a !== typeof b) return sign * String(a).localeCompare(String(b));
      return sign * (a < b ? -1 : a > b ? 1 : 0);
    });
    table.querySelectorAll("th[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
    header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    table.tBodies[0].append(...rows);
  }

  function prepare(root) {
    root.querySelectorAll("table.sortable thead th").forEach((header) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => sortBy(header, header.getAttribute("aria-sort") !== "ascending"));
    });
    root.querySelectorAll("button.copy").forEach((button) => {
      const said = button.textContent;
      button.hidden = !navigator.clipboard;
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(button.parentElement.querySelector("pre").textContent);
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = said; }, 2000);
      });
    });
  }

  prepare(document);
  window.page = { prepare, sortBy };
})();
