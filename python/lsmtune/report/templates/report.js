"use strict";
(function () {
  const holder = document.getElementById("figures");
  const figures = holder ? JSON.parse(holder.textContent) : {};
  const scheme = window.matchMedia("(prefers-color-scheme: dark)");

  // Colours in figures are names of CSS variables: put in what the scheme says now.
  function coloured(value, key, style) {
    if (typeof value === "string" && /color$/.test(key) && value.startsWith("--")) {
      return style.getPropertyValue(value).trim();
    }
    if (Array.isArray(value)) return value.map((item) => coloured(item, key, style));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, coloured(item, name, style)])
    );
  }

  function axis(own) {
    return Object.assign(
      { gridcolor: "--grid", linecolor: "--rule", zeroline: false, automargin: true,
        tickfont: { color: "--muted" }, nticks: 6 },
      own,
      own && own.title ? { title: { ...own.title, font: { color: "--muted", size: 12 }, standoff: 10 } } : {}
    );
  }

  function layout(own, body) {
    const base = {
      height: 340,
      margin: { l: 60, r: 16, t: 30, b: 30 },
      paper_bgcolor: "--card",
      plot_bgcolor: "--card",
      font: { family: body.fontFamily, size: 12, color: "--ink" },
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { color: "--ink" } },
      hoverlabel: { bgcolor: "--card", bordercolor: "--rule", font: { color: "--ink" }, align: "left" },
      hovermode: "closest",
      dragmode: false,
    };
    return Object.assign(base, own, { xaxis: axis(own.xaxis), yaxis: axis(own.yaxis) });
  }

  function draw() {
    const style = getComputedStyle(document.documentElement);
    const body = getComputedStyle(document.body);
    for (const [name, figure] of Object.entries(figures)) {
      const place = document.getElementById("plot-" + name);
      if (!place) continue;
      const shown = coloured({ data: figure.data, layout: layout(figure.layout, body) }, "", style);
      Plotly.react(place, shown.data, shown.layout, { displayModeBar: false, responsive: true });
    }
  }

  if (window.Plotly && holder) {
    document.querySelectorAll(".plot .nojs").forEach((element) => element.remove());
    draw();
    scheme.addEventListener("change", draw);
    document.querySelectorAll("details").forEach((element) => element.addEventListener("toggle", () =>
      element.querySelectorAll(".js-plotly-plot").forEach((plot) => Plotly.Plots.resize(plot))));
  }

  function keyOf(row, column) {
    const cell = row.cells[column];
    const key = cell.dataset.key !== undefined ? cell.dataset.key : cell.textContent.trim();
    return key === "" ? null : isNaN(key) ? key : Number(key);
  }

  function sortBy(header) {
    const table = header.closest("table");
    const ascending = header.getAttribute("aria-sort") !== "ascending";
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

  document.querySelectorAll("table.sortable thead th").forEach((header) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => sortBy(header));
  });
})();
