import { make, moment, replace, scroll, word } from "./dom.js";
import { showLog } from "./log.js";
import { askFlex, askSave, askSignal, askStop } from "./act.js";
import { showCurves } from "./curves.js";
import { showTerminal } from "./terminal.js";
import { showTimeline } from "./timeline.js";

const columns = [
  ["Instance", (row, choose) => make("button", { onclick: () => choose(row.instance), title: "show its log", "data-key": "log " + row.instance }, row.instance)],
  ["Phase", (row) => word(row.phase)],
  ["Host", (row) => row.host || ""],
  ["Gen", (row) => String(row.generation || "")],
  ["Attempt", (row) => String(row.attempt || "")],
  ["Progress", (row) => row.progress === null || row.progress === undefined ? "" :
    make("progress", { value: row.progress, max: 1, title: Math.round(row.progress * 100) + " %" })],
  ["Step", (row) => row.checkpoint_step === null || row.checkpoint_step === undefined ? "" : String(row.checkpoint_step)],
  ["Exit", (row) => row.exit === null || row.exit === undefined ? "" : String(row.exit)],
  ["Since", (row) => moment(row.since)],
  ["Cause", (row) => row.cause || ""],
];

const few = 20; // rows that are seen at a glance
const mostRows = 300;

// showApp shows one app: how it stands, its instances, and the log of the one that is chosen.
export function showApp(main, id, me) {
  const title = make("h2");
  const facts = make("dl");
  const body = make("tbody");
  const logs = make("section", { "aria-label": "log" });
  const use = make("section", { "aria-label": "use" });
  const passed = make("section", { "aria-label": "timeline" });
  let counts = {}, rows = [], running = true;
  const filter = make("input", { type: "search", placeholder: "filter", oninput: draw, "aria-label": "filter the instances" });
  const count = make("span", { className: "dim" });
  const tools = make("div", { className: "tools", hidden: true }, filter, count);
  const acts = make("div", { className: "tools acts", hidden: !me.act },
    make("button", { onclick: () => askStop(id) }, "Stop …"),
    make("button", { onclick: () => askSave(id) }, "Save …"),
    make("button", { onclick: () => askFlex(id, counts) }, "Counts …"));
  let log = null;
  main.append(
    title,
    facts,
    acts,
    tools,
    scroll("instances", make("table", {},
      make("thead", {}, make("tr", {}, ...columns.map(([name]) => make("th", { scope: "col" }, name)), me.act ? make("th", { scope: "col" }, "Act") : null)), body)),
    passed,
    use,
    logs,
  );
  const line = showTimeline(passed, id);
  const curves = showCurves(use, id);

  function choose(instance) {
    if (log) log.close();
    log = showLog(logs, id, instance);
    logs.scrollIntoView({ block: "nearest" });
  }

  async function openShell(instance) {
    if (log) log.close();
    log = (await showTerminal(logs, id, instance)) || log;
    logs.scrollIntoView({ block: "nearest" });
  }

  return {
    feed: "/api/v1/apps/" + encodeURIComponent(id) + "/live",
    update(app) {
      title.replaceChildren(app.app + (app.name ? " (" + app.name + "): " : ": "), word(app.phase));
      const lines = [];
      const add = (name, value) => { if (value) lines.push(make("dt", {}, name), make("dd", {}, value)); };
      if (app.verdict) {
        add("Verdict", make("span", {}, word(app.verdict.outcome), app.verdict.cause ? ": " + app.verdict.cause : ""));
        add("Advice", app.verdict.advice);
      } else if (app.directive) {
        add("Directive", app.directive.act + (app.directive.why ? ": " + app.directive.why : ""));
      }
      add("Run", app.run);
      add("Generation", app.generation ? String(app.generation) : "");
      add("Started", moment(app.started));
      add("Missing", (app.missing || []).join(", "));
      for (const row of app.verdict ? [] : app.instances) {
        for (const [name, url] of Object.entries(row.exports || {})) {
          if (url.startsWith("http://")) add("Page", make("a", { href: "/apps/" + [id, "proxy", row.instance, name].map(encodeURIComponent).join("/"), target: "_blank", rel: "noopener" }, row.instance + " " + name));
        }
      }
      for (const row of app.instances) {
        for (const warning of row.warnings || []) add("Warning", make("span", { className: "warn" }, row.instance + ": " + warning.text));
      }
      facts.replaceChildren(...lines);
      acts.hidden = !me.act || Boolean(app.verdict);
      counts = (app.directive && (app.directive.target || app.directive.counts)) || {};
      line.update();
      rows = app.instances;
      running = !app.verdict;
      draw();
    },
    close() {
      curves.close();
      if (log) log.close();
    },
  };

  // draw shows the rows that the filter leaves, those that are not well first where there are many.
  function draw() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = rows.filter((row) => {
      const text = [row.instance, row.phase, row.host, row.role, row.cause].join(" ").toLowerCase();
      return words.every((each) => text.includes(each));
    });
    if (found.length > mostRows) found.sort((a, b) => (a.phase === "running") - (b.phase === "running"));
    tools.hidden = rows.length <= few;
    count.textContent = found.length > mostRows ? `${mostRows} of ${found.length} shown` : `${found.length} instances`;
    const acts = (row) => make("td", {},
      make("button", { onclick: () => askSignal(id, row.instance), title: "signal " + row.instance, "data-key": "signal " + row.instance }, "Signal …"), " ",
      make("button", { onclick: () => openShell(row.instance), title: "a shell in " + row.instance, "data-key": "shell " + row.instance }, "Shell"));
    replace(body, ...found.slice(0, mostRows).map((row) => make("tr", {},
      ...columns.map(([, cell]) => make("td", {}, cell(row, choose))), me.act && running ? acts(row) : null)));
  }
}
