// the text that an element carries (study.analysis.report.page.packed)
async function unpacked(name) {
  const bytes = Uint8Array.from(atob(document.getElementById(name).textContent), letter => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
}

// no button that uploads the data to a chart service
const OPTIONS = {
  responsive: true, displaylogo: false, showSendToCloud: false, plotlyServerURL: "",
  displayModeBar: matchMedia("(hover: hover)").matches ? "hover" : false,
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d"],
};

// what a plot needs beside one another: its panels, or the axes that lines go through
function width({xaxis, ...layout}) {
  const starts = Object.keys(layout).filter(name => name.startsWith("xaxis")).map(name => layout[name].domain[0]);
  const panels = new Set([xaxis.domain?.[0], ...starts]).size;
  return Math.max(panels * (panels > 3 ? 11 : 14), 7 * (xaxis.tickvals?.length ?? 0));
}

async function draw(figure, layout = {}) {
  const plot = JSON.parse(figure.text ??= await unpacked(figure.dataset.plot));
  figure.classList.add("live");  // before drawing: the plot takes the width that it is shown at
  const node = figure.querySelector(".plot");
  node.style.minWidth = `${width(plot.layout)}rem`;
  await Plotly.react(node, plot.data, {...plot.layout, ...layout}, OPTIONS);
  hint();
}

const figures = [...document.querySelectorAll("[data-plot]")];
const absent = figure => figure.classList.remove("live");

async function start() {
  const script = document.createElement("script");
  script.textContent = await unpacked("library");
  document.head.append(script);
  for (const figure of figures) await draw(figure).catch(() => absent(figure));
  addEventListener("beforeprint", () => figures.forEach(figure => draw(figure, {width: 640})));
  addEventListener("afterprint", () => figures.forEach(figure => draw(figure)));
}

start().catch(() => figures.forEach(absent));
