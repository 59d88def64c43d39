import { make, moment, replace, scroll, span, word } from "./dom.js";
import { askHold, askRelease, askSignal } from "./act.js";

// A column has a value of each row, and perhaps another form of it for the table.
const columns = [
  { name: "Instance", of: (row) => row.instance },
  { name: "Role", of: (row) => row.role === row.component ? "" : row.role },
  { name: "Phase", of: (row) => row.phase, cell: (row) => word(row.phase) },
  { name: "Held until", of: (row) => row.hold && row.hold.until, cell: (row) => held(row.hold.until) },
  { name: "Host", of: (row) => row.host },
  { name: "GPUs", of: (row) => (row.gpus || []).map((gpu) => [gpu.model, gpu.id].join(" ")).join(" "), cell: gpus },
  { name: "Gen", of: (row) => row.generation || "" },
  { name: "Attempt", of: (row) => row.attempt || "" },
  { name: "Progress", of: (row) => row.progress, cell: (row) =>
    make("progress", { value: row.progress, max: 1, title: Math.round(row.progress * 100) + " %", "aria-label": "progress" }) },
  { name: "Step", of: (row) => row.checkpoint_step },
  { name: "Started", of: (row) => row.started, cell: (row) => moment(row.started) },
  { name: "Finished", of: finished, cell: (row) => moment(finished(row)) },
  { name: "Exit", of: (row) => row.exit },
  { name: "Since", of: (row) => row.since, cell: (row) => moment(row.since) },
  { name: "Cause", of: (row) => row.cause },
];

const few = 20; // rows that are seen at a glance
const mostRows = 300;

const empty = (value) => value === null || value === undefined || value === "";

// finished is when the last process of an instance ended; a registry may not know.
function finished(row) {
  const at = row.exit_info && row.exit_info.at;
  return at && !at.startsWith("0001-") ? at : "";
}

// held is when a container that is kept will be given up, and how long that is from now.
function held(until) {
  return make("span", {}, moment(until), " (", make("span", { "data-until": until }, left(until)), ")");
}

function left(until) {
  const seconds = (new Date(until) - Date.now()) / 1000;
  return seconds > 0 ? "in " + span(seconds) : "now";
}

// gpus are the devices of an instance, each with its model; the whole id is copied with the cell.
function gpus(row) {
  return make("ul", { className: "plain" }, ...row.gpus.map((gpu) =>
    make("li", {}, gpu.model ? gpu.model + " " : "", make("span", { className: "id", title: gpu.id }, gpu.id))));
}

// showInstances shows the instances of an app in a table. Columns in which no instance has anything are left out.
export function showInstances(place, app, { act, openLog, openShell }) {
  const head = make("tr");
  const body = make("tbody");
  const filter = make("input", { type: "search", placeholder: "filter", oninput: draw, "aria-label": "filter the instances" });
  const count = make("span", { className: "dim" });
  const tools = make("div", { className: "tools", hidden: true }, filter, count);
  place.append(tools, scroll("instances", make("table", {}, make("thead", {}, head), body)));
  let rows = [], running = true;

  function button(row, name, does, title, press) {
    return make("button", { onclick: press, title: `${title} ${row.instance}`, "data-key": `${does} ${row.instance}` }, name);
  }

  // acts are what may be asked of an instance: a container that is kept has no process to signal.
  function acts(row) {
    const kept = row.hold ? [
      button(row, "Extend …", "extend", "keep the container of", () => askHold(app, row.instance)),
      button(row, "Release …", "release", "release the container of", () => askRelease(app, row.instance)),
    ] : [button(row, "Signal …", "signal", "signal", () => askSignal(app, row.instance))];
    return make("div", { className: "row-acts" }, ...kept, button(row, "Shell", "shell", "a shell in", () => openShell(row.instance)));
  }

  // draw shows the rows that the filter leaves, those that are not well first where there are many.
  function draw() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = rows.filter((row) => {
      const text = columns.slice(0, 6).map((column) => column.of(row)).concat(row.cause).join(" ").toLowerCase();
      return words.every((each) => text.includes(each));
    });
    if (found.length > mostRows) found.sort((a, b) => (a.phase === "running") - (b.phase === "running"));
    tools.hidden = rows.length <= few;
    count.textContent = found.length > mostRows ? `${mostRows} of ${found.length} shown` : `${found.length} instances`;
    const shown = columns.filter((column) => rows.some((row) => !empty(column.of(row))));
    const acting = act && rows.some((row) => running || row.hold);
    head.replaceChildren(...shown.map((column) => make("th", { scope: "col" }, column.name)), ...(acting ? [make("th", { scope: "col" }, "Act")] : []));
    const cell = (row, column) => {
      if (column.name === "Instance") return button(row, row.instance, "log", "show the log of", () => openLog(row.instance));
      const value = column.of(row);
      return empty(value) ? "" : column.cell ? column.cell(row) : String(value);
    };
    replace(body, ...found.slice(0, mostRows).map((row) => make("tr", {},
      ...shown.map((column) => make("td", { "data-column": column.name }, cell(row, column))),
      acting ? make("td", {}, running || row.hold ? acts(row) : "") : null)));
  }

  const clock = setInterval(() => {
    for (const each of body.querySelectorAll("[data-until]")) each.textContent = left(each.dataset.until);
  }, 1000);
  return {
    update(all, on) {
      rows = all;
      running = on;
      draw();
    },
    close: () => clearInterval(clock),
  };
}
