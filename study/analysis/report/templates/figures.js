const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~";
const DARK = {{ colours | tojson }};
const dark = matchMedia("(prefers-color-scheme: dark)");

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

// the figures as files beside the page, where a browser cannot draw them
function absent(figure) {
  figure.classList.remove("live");
  figure.classList.add("failed");
  const picture = new Image();
  picture.src = `figures/${figure.dataset.plot}.png`;
  picture.alt = figure.querySelector("figcaption").textContent;
  figure.querySelector(".absent").after(picture);
}

// no button that uploads the data to a chart service
const OPTIONS = {
  responsive: true, displaylogo: false, showSendToCloud: false, plotlyServerURL: "",
  displayModeBar: matchMedia("(hover: hover)").matches ? "hover" : false,
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d"],
};

async function draw(figure, isDark, layout = {}) {
  let text = figure.text ??= await unpacked(figure.dataset.plot);
  if (isDark) for (const [light, colour] of Object.entries(DARK)) text = text.replaceAll(light, colour);
  const plot = JSON.parse(text);
  figure.classList.add("live");  // before drawing: the plot takes the width that it is shown at
  const node = figure.querySelector(".plot");
  node.classList.toggle("panels", "xaxis2" in plot.layout || plot.data[0].type === "parcoords");
  await Plotly.react(node, plot.data, {...plot.layout, ...layout}, OPTIONS);
  hint();
}

const figures = [...document.querySelectorAll("[data-plot]")];

async function start() {
  const script = document.createElement("script");
  script.textContent = await unpacked("library");
  document.head.append(script);
  for (const figure of figures) await draw(figure, dark.matches).catch(() => absent(figure));
  dark.addEventListener("change", () => figures.forEach(figure => draw(figure, dark.matches)));
  addEventListener("beforeprint", () => figures.forEach(figure => draw(figure, false, {width: 640})));
  addEventListener("afterprint", () => figures.forEach(figure => draw(figure, dark.matches)));
}

start().catch(() => figures.forEach(absent));
