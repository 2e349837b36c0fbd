const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~";

// the text that an element carries: compressed, in base 85 (study.analysis.report.packed)
async function unpacked(name) {
  const {textContent: digits, dataset} = document.getElementById(name);
  const values = new Uint8Array(128);
  for (let value = 0; value < 85; value++) values[DIGITS.charCodeAt(value)] = value;
  const bytes = new DataView(new ArrayBuffer(digits.length / 5 * 4));
  for (let at = 0; at < digits.length; at += 5) {
    let word = 0;
    for (let place = at; place < at + 5; place++) word = word * 85 + values[digits.charCodeAt(place)];
    bytes.setUint32(at / 5 * 4, word);
  }
  const content = new Blob([new Uint8Array(bytes.buffer, 0, Number(dataset.length))]);
  return new Response(content.stream().pipeThrough(new DecompressionStream("deflate"))).text();
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
