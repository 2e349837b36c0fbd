"use strict";
// Draws the document of state.json, every two seconds while the page is looked at.

const EVERY = 2000;
const of = (id) => document.getElementById(id);
const dark = matchMedia("(prefers-color-scheme: dark)");
let shown = null;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;"); // Plotly reads some HTML

function number(value, percent) {
  if (value === null || value === undefined) return "-";
  return percent ? `${(100 * value).toFixed(1)}%` : String(Number(value.toPrecision(4)));
}

function setting(value) {
  return typeof value === "number" ? String(Number(value.toPrecision(4))) : String(value);
}

function clock(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const two = (part) => String(part).padStart(2, "0");
  const minutes = Math.floor(whole / 60);
  return whole < 3600 ? `${minutes}:${two(whole % 60)}` : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(whole % 60)}`;
}

function element(name, text, parent) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

function draw(id, traces, study, x, shapes) {
  const ink = colour("ink"), line = colour("line");
  const axis = { color: ink, gridcolor: line, zerolinecolor: line, linecolor: line, automargin: true };
  const layout = {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest", uirevision: id + (x.key || ""),
    font: { family: "system-ui, sans-serif", size: 13, color: ink }, margin: { l: 50, r: 15, t: 40, b: 60 },
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" }, showlegend: true, shapes: shapes || [],
    xaxis: { ...axis, ...x.axis, title: { text: plain(x.title), standoff: 8 } },
    yaxis: { ...axis, title: { text: plain(study.metric) }, ...(study.percent ? { tickformat: ".1~%" } : {}) },
  };
  Plotly.react(id, traces, layout, { responsive: true, displayModeBar: false });
}

const MARKS = {
  pruned: { symbol: "triangle-down-open", size: 7, colour: "pruned" },
  complete: { symbol: "circle", size: 7, colour: "mark" },
  baseline: { symbol: "star", size: 13, colour: "ink" },
};

function marks(study, x) {
  const { trial, value, state } = study.marks;
  return Object.entries(MARKS).map(([kind, mark]) => {
    const places = state.map((one, place) => place).filter((place) => state[place] === kind && x[place] !== null);
    return {
      type: "scatter", mode: "markers", name: kind, x: places.map((place) => x[place]),
      y: places.map((place) => value[place]), marker: { symbol: mark.symbol, size: mark.size, color: colour(mark.colour) },
      text: places.map((place) => `trial ${trial[place]}: ${number(value[place], study.percent)}<br>` +
        study.keys.filter(({ key }) => study.marks[key][place] !== null)
          .map(({ key }) => plain(`${key} ${setting(study.marks[key][place])}`)).join("<br>")),
      hoverinfo: "text",
    };
  }).filter((trace) => trace.x.length);
}

function ring(study, x) {
  const best = study.best;
  if (!best || x === null || x === undefined) return [];
  return [{
    type: "scatter", mode: "markers", name: "best", x: [x], y: [best.value], hoverinfo: "skip",
    marker: { symbol: "circle-open", size: 15, color: colour("best"), line: { width: 3 } },
  }];
}

function baselineLine(study) {
  if (!study.baseline) return [];
  const y = study.baseline.value;
  return [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, line: { color: colour("ink"), width: 1, dash: "dash" } }];
}

function drawSearch(study) {
  const steps = {
    type: "scatter", mode: "lines", name: "best so far", x: study.steps.trial, y: study.steps.value,
    line: { shape: "hv", color: colour("mark"), width: 2.5 }, hoverinfo: "skip",
  };
  const inSearch = study.best && study.marks.trial.includes(study.best.trial);
  const traces = [...marks(study, study.marks.trial), steps, ...(inSearch ? ring(study, study.best.trial) : [])];
  draw("search", traces, study, { title: "trial" }, baselineLine(study));
}

const LINES = {
  pruned: ["pruned", 1, 0.6], complete: ["mark", 1, 0.4], failed: ["bad", 1, 0.6], running: ["running", 1.8, 1],
  baseline: ["ink", 2.5, 1], best: ["best", 3, 1],
};

function drawCurves(study) {
  const named = new Set();
  const traces = study.curves.map(({ trial, kind, epoch, value }) => {
    const [name, width, opacity] = LINES[kind] || LINES.complete;
    const first = !named.has(kind);
    named.add(kind);
    return {
      type: "scatter", mode: epoch.length > 1 ? "lines" : "markers", name: kind, legendgroup: kind, showlegend: first,
      x: epoch, y: value, opacity, line: { color: colour(name), width, dash: kind === "baseline" ? "dash" : "solid" },
      marker: { color: colour(name), size: 5 },
      text: value.map((one, place) => `trial ${trial}, epoch ${epoch[place]}: ${number(one, study.percent)}`), hoverinfo: "text",
    };
  });
  draw("curves", traces, study, { title: "epoch", axis: { range: [0, study.epochs + 0.5] } });
}

function drawParameter(study) {
  const domain = study.keys.find(({ key }) => key === of("key").value);
  if (!domain) return;
  const { key, choices, low, high, log } = domain;
  const at = choices ? (value) => (value === null ? null : String(value)) : (value) => value;
  const axis = choices
    ? { type: "category", categoryorder: "array", categoryarray: choices.map(String) }
    : log ? { type: "log", ...(high >= 100 * low ? { dtick: 1 } : {}) } : { type: "linear" };
  const best = study.best ? study.best.params[key] : undefined;
  const traces = [...marks(study, study.marks[key].map(at)), ...ring(study, best === undefined ? null : at(best))];
  draw("parameter", traces, study, { title: key, axis, key }, baselineLine(study));
}

function drawTrade(study) {
  const trade = study.trade;
  of("trade-off").hidden = !trade;
  if (!trade) return;
  const ended = study.marks.state.map((state) => state === "complete" || state === "baseline");
  const x = trade.value.map((value, place) => (ended[place] ? value : null));
  const traces = marks(study, x);
  if (trade.front.length > 1) {
    traces.push({
      type: "scatter", mode: "lines", name: "front", hoverinfo: "skip", line: { color: colour("best"), width: 1.5 },
      x: trade.front.map(([at]) => at), y: trade.front.map(([, at]) => at),
    });
  }
  const place = study.best ? study.marks.trial.indexOf(study.best.trial) : -1;
  const line = { color: colour("bad"), width: 1, dash: "dot" };
  const shapes = [
    ...trade.limits.map((at) => ({ type: "line", yref: "paper", y0: 0, y1: 1, x0: at, x1: at, line })),
    ...trade.first_limits.map((at) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: at, y1: at, line })),
  ];
  const axis = trade.percent ? { tickformat: ".1~%" } : {};
  draw("trade", [...traces, ...ring(study, x[place])], study, { title: trade.metric, axis }, shapes);
}

function drawRunning(study) {
  const table = of("running"), [head, body] = [table.tHead, table.tBodies[0]];
  table.hidden = !study.now.length;
  of("none").hidden = Boolean(study.now.length);
  of("more").hidden = !study.more_now;
  of("more").textContent = `and ${study.more_now} more`;
  head.replaceChildren();
  body.replaceChildren();
  const titles = element("tr", undefined, head);
  for (const title of ["trial", "", "stage", "epoch", study.metric, ...study.keys.map(({ key }) => key)]) element("th", title, titles);
  for (const trial of study.now) {
    const row = element("tr", undefined, body);
    element("td", trial.trial, row);
    const button = element("button", trial.stopping ? "stops" : "Stop", element("td", undefined, row));
    button.disabled = !trial.stoppable;
    button.setAttribute("aria-label", `Stop trial ${trial.trial}`);
    button.onclick = () => post("stop", { trial: trial.trial }, `trial ${trial.trial} ends at its next report`);
    element("td", trial.stage, row);
    element("td", `${trial.epoch} of ${study.epochs}`, row);
    element("td", number(trial.value, study.percent), row);
    for (const { key } of study.keys) element("td", key in trial.params ? setting(trial.params[key]) : "-", row);
  }
}

function makeFields(study) {
  const keys = of("key"), fields = of("fields");
  if (keys.options.length || !study.keys.length) return;
  for (const { key, low, high, choices } of study.keys) {
    element("option", key, keys).value = key;
    const label = element("label", choices ? key : `${key} (${setting(low)} to ${setting(high)})`, fields);
    const field = element(choices ? "select" : "input", undefined, label);
    field.name = key;
    if (choices) for (const choice of [null, ...choices]) element("option", choice === null ? "" : String(choice), field);
  }
}

function fill() {
  if (!shown || !shown.best) return;
  for (const field of of("enqueue").querySelectorAll("input, select")) {
    field.value = field.name in shown.best.params ? String(shown.best.params[field.name]) : "";
  }
}

function drawWords(study) {
  const counts = Object.entries(study.counts).map(([state, count]) => `${count} ${state}`).join(", ");
  document.title = `${study.name}: ${study.state}`;
  of("name").textContent = study.name;
  of("state").textContent = study.state;
  of("counts").textContent = `${counts || "no trial yet"}; ${study.tried} of ${study.limit} configurations tried`;
  if (study.best) {
    const { trial, value, params, confirmed } = study.best;
    const settings = Object.entries(params).map(([key, one]) => `${key} ${setting(one)}`).join(", ");
    const fresh = confirmed ? `; on ${confirmed.n} fresh seeds ${number(confirmed.mean, study.percent)}` : "";
    const before = study.baseline && study.baseline.trial !== trial ? ` The baseline has ${number(study.baseline.value, study.percent)}.` : "";
    of("best").textContent = `Best so far: trial ${trial}, ${study.metric} ${number(value, study.percent)}${fresh} (${settings}).${before}`;
  }
  of("further").replaceChildren();
  for (const text of study.further) element("p", text, of("further"));
  const left = study.pace && study.pace.remaining !== null ? `, about ${clock(study.pace.remaining)} ${study.running ? "to go" : "left to do"}` : "";
  of("pace").textContent = study.pace ? `${study.pace.epochs_per_minute.toFixed(1)} epochs per minute${left}` : "";
  of("waiting").textContent = study.waiting.length ? `Enqueued and not tried yet: ${study.waiting.length}` : "";
  of("ask").hidden = study.over;
  of("end").disabled = !study.running;
  of("report").textContent = `study report ${study.name}`;
}

function redraw() {
  if (!shown) return;
  drawWords(shown);
  makeFields(shown);
  drawRunning(shown);
  drawSearch(shown);
  drawCurves(shown);
  drawParameter(shown);
  drawTrade(shown);
}

let asked = null; // the request whose answer is shown

async function post(what, body, words) {
  of("answer").textContent = "asking ...";
  asked = null;
  try {
    const answer = await fetch(what, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
    });
    const told = await answer.json();
    if (!answer.ok) throw new Error(told.error);
    asked = { id: told.request, words };
    of("answer").textContent = "asked for; its driver has not answered yet";
    await look();
  } catch (error) {
    of("answer").textContent = error.message;
  }
}

function drawAnswer(study) {
  if (!asked || !(asked.id in study.answers)) return;
  const why = study.answers[asked.id];
  of("answer").textContent = why ? `refused: ${why}` : asked.words;
  asked = null;
}

async function look() {
  try {
    const answer = await fetch("state.json");
    const study = await answer.json();
    if (!answer.ok) throw new Error(study.error);
    of("trouble").hidden = true;
    if ("reading" in study) {
      of("state").textContent = `reading the ledger: ${Math.round(100 * study.reading)}%`;
      return look();
    }
    const changed = !shown || shown.version !== study.version || shown.running !== study.running;
    shown = study;
    drawAnswer(study);
    if (changed) redraw();
  } catch (error) {
    of("trouble").textContent = error instanceof TypeError ? "The page's server does not answer: what is shown is old." : error.message;
    of("trouble").hidden = false;
  }
}

async function follow() {
  if (!document.hidden) await look();
  setTimeout(follow, EVERY);
}

of("key").onchange = () => shown && drawParameter(shown);
of("fill").onclick = fill;
of("end").onclick = () => {
  if (confirm("End the search? No further configuration is tried.")) post("end", {}, "the search is ended");
};
of("enqueue").onsubmit = (event) => {
  event.preventDefault();
  const fields = [...of("enqueue").querySelectorAll("input, select")].filter((field) => field.value.trim() !== "");
  post("enqueue", { assignments: fields.map((field) => `${field.name}=${field.value}`) }, "the search tries this configuration next");
};
dark.addEventListener("change", redraw);
document.addEventListener("visibilitychange", () => document.hidden || look());
follow();
