import { make } from "./dom.js";

// mostCurves is how many instances are drawn over each other.
const mostCurves = 16;
const shortest = 60; // s that a chart shows at least
const shown = 3600; // s back from now
const every = 5000; // ms between looks

// showCurves draws the samples of instances: of one, or of all over each other.
export function showCurves(place, api) {
  const only = make("select", { onchange: draw, "aria-label": "instances" }, make("option", { value: "" }, "all"));
  const charts = make("div", { className: "charts" });
  const note = make("p", { className: "dim" });
  place.replaceChildren(make("h2", {}, "Use"), make("div", { className: "tools" }, only), charts, note,
    make("link", { rel: "stylesheet", href: "/web/parts/uplot.css" }));
  let all = [], Plot = null, drawn = [];
  let goesOn = null; // null: nobody has said

  let looking = false;

  async function look() {
    if (looking) return;
    looking = true;
    try {
      await take();
    } finally {
      looking = false;
    }
  }

  async function take() {
    const answer = await fetch(`${api}/samples` + (goesOn ? `?since=${-shown}` : ""));
    if (!answer.ok) {
      note.textContent = await answer.json().then((said) => said.error, () => "The server has no samples.");
      return;
    }
    const sent = (await answer.json()).instances.filter((one) => one.at && one.at.length > 0);
    if (sent.length > 0 || goesOn) all = sent; // what was drawn stays when the agents have left
    const names = ["", ...all.map((one) => one.instance)];
    if (names.length !== only.options.length) {
      const chosen = only.value;
      only.replaceChildren(...names.map((name) => make("option", { value: name }, name || "all")));
      only.value = names.includes(chosen) ? chosen : "";
    }
    note.textContent = all.length ? "" : goesOn ? "No agent sends samples now; they end with the agent." : "Samples end with the agent, and no history store kept this run's: muster run --history URL.";
    draw();
  }

  function draw() {
    for (const plot of drawn) plot.destroy();
    drawn = [];
    if (!Plot) return;
    const chosen = all.filter((one) => !only.value || one.instance === only.value).slice(0, mostCurves);
    const megabytes = (list) => list.map((each) => each === null ? null : each / (1 << 20));
    chart("Memory, MiB", chosen.map((one) => ({ name: one.instance, at: one.at, y: megabytes(one.memory), limit: one.limits?.memory / (1 << 20) })));
    chart("Cores", chosen.map((one) => ({ name: one.instance, at: one.at, y: one.cores, limit: one.limits?.cores })));
    const gpus = chosen.flatMap((one) => (one.gpus || []).map((gpu) => ({ name: one.instance + " " + gpu.id, at: one.at, gpu })));
    chart("GPU use, %", gpus.map((one) => ({ ...one, y: one.gpu.use })));
    chart("GPU memory, MiB", gpus.map((one) => ({ ...one, y: megabytes(one.gpu.memory), limit: one.gpu.memory_total / (1 << 20) })));
  }

  function chart(title, curves) {
    if (curves.length === 0) return;
    const axis = { stroke: getComputedStyle(document.body).color, grid: { stroke: "rgb(128 128 128 / 25%)" }, ticks: { stroke: "rgb(128 128 128 / 25%)" } };
    const color = (i) => `hsl(${(i * 47 + 210) % 360} 65% 50%)`;
    const tables = curves.map((one) => [one.at, one.y]);
    const series = curves.map((one, i) => ({ label: one.name, stroke: color(i), width: 1.5, spanGaps: false }));
    curves.forEach((one, i) => {
      if (one.limit > 0 && curves.length <= 4) {
        tables.push([one.at, one.at.map(() => one.limit)]);
        series.push({ label: one.name + " limit", stroke: color(i), dash: [4, 4], width: 1 });
      }
    });
    const data = Plot.join(tables);
    const width = Math.max(280, Math.min(560, charts.clientWidth));
    drawn.push(new Plot({
      title, width, height: 220, series: [{}, ...series], axes: [axis, { ...axis, size: 60 }],
      scales: { x: { range: (plot, low, high) => [Math.min(low, high - shortest), high] }, y: { range: (plot, low, high) => [0, high > 0 ? high * 1.05 : 1] } },
    }, data, charts));
  }

  import("/web/parts/uplot.js").then(
    (library) => { Plot = library.default; if (goesOn !== null) look(); },
    () => { note.textContent = "This muster was built without curves; muster top shows the numbers."; });
  let wide = 0;
  const watch = new ResizeObserver(() => {
    if (charts.clientWidth !== wide) {
      wide = charts.clientWidth;
      draw();
    }
  });
  watch.observe(charts);
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", draw);
  const clock = setInterval(() => { if (Plot && goesOn) look(); }, every);
  // update tells whether the run goes on: what one that is over has used stays as it is.
  function update(on) {
    if (on === goesOn) return;
    goesOn = on;
    if (Plot) look();
  }
  return { update, close() { clearInterval(clock); watch.disconnect(); scheme.removeEventListener("change", draw); for (const plot of drawn) plot.destroy(); } };
}
