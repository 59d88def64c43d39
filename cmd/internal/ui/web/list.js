import { make, moment, replace, scroll, span, word } from "./dom.js";
import { address } from "./runs.js";

const columns = [
  { name: "App", of: (app) => app.app, cell: (app) => make("a", { href: address(app.app, app.run), "data-key": app.app }, app.app) },
  { name: "Name", of: (app) => app.name },
  { name: "Phase", of: (app) => app.phase, cell: (app) => word(app.phase) },
  { name: "Outcome", of: (app) => app.outcome || "", cell: (app) => word(app.outcome) },
  { name: "Live", of: (app) => app.live || 0, cell: (app) => String(app.live || ""), number: true },
  { name: "Started", of: (app) => app.started || "", cell: (app) => moment(app.started) },
  { name: "Took", of: took, cell: (app) => span(took(app)), number: true },
  { name: "User", of: (app) => app.user || "" },
  { name: "Launcher", of: (app) => app.launcher || "" },
  { name: "GPU-s", of: (app) => reserved(app, "gpu"), cell: (app) => amount(reserved(app, "gpu")), number: true },
  { name: "Core-s", of: (app) => reserved(app, "core"), cell: (app) => amount(reserved(app, "core")), number: true },
  { name: "MB-s", of: (app) => reserved(app, "mb"), cell: (app) => amount(reserved(app, "mb")), number: true },
  { name: "Registry", of: (app) => (app.registry || "").startsWith("unix:") ? "" : app.registry || "" },
];

// took is for how many seconds an app has run; of one that goes on, until now.
function took(app) {
  return app.seconds ?? (app.started && !app.outcome ? (Date.now() - new Date(app.started)) / 1000 : 0);
}

// reserved is what was set aside for an app, over the time that it has run.
function reserved(app, what) {
  const now = { gpu: app.gpus, core: app.cores, mb: app.mb }[what];
  return app[what + "_seconds"] ?? (now === null || now === undefined ? -1 : now * took(app));
}

function amount(n) {
  return n < 0 ? "" : Math.round(n).toLocaleString("en").replaceAll(",", "\u202f");
}

// text is what the filter looks at; of a row that has not changed it is made once.
const texts = new WeakMap();
function text(app) {
  if (!texts.has(app)) {
    texts.set(app, [app.app, app.name, app.phase, app.outcome, app.user, app.launcher, app.registry].join(" ").toLowerCase());
  }
  return texts.get(app);
}

// mostRows is how many rows are drawn; the filter finds the others.
const mostRows = 500;

// showList shows all apps, sorted and filtered.
export function showList(main) {
  let apps = new Map(); // by id
  let drawing = 0;
  let sorted = { column: 5, down: true };
  const filter = make("input", { type: "search", placeholder: "filter", oninput: draw, "aria-label": "filter the apps" });
  const count = make("span", { className: "dim" });
  const warnings = make("p", { className: "warn", role: "status" });
  const head = make("tr");
  const body = make("tbody");
  main.append(
    make("h2", {}, "Apps"),
    make("div", { className: "tools" }, filter, count),
    warnings,
    scroll("apps", make("table", {}, make("thead", {}, head), body)),
  );
  columns.forEach((column, i) => {
    const button = make("button", { onclick: () => sort(i) }, column.name);
    head.append(make("th", { className: column.number ? "number" : "", scope: "col" }, button));
  });

  function sort(i) {
    sorted = { column: i, down: sorted.column === i ? !sorted.down : false };
    draw();
  }

  function draw() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = [...apps.values()].filter((app) => words.every((each) => text(app).includes(each)));
    const of = columns[sorted.column].of;
    const keys = new Map(found.map((app) => [app, of(app)]));
    found.sort((a, b) => {
      const x = keys.get(a), y = keys.get(b);
      const order = x < y ? -1 : x > y ? 1 : 0;
      return sorted.down ? -order : order;
    });
    [...head.children].forEach((cell, i) => {
      cell.setAttribute("aria-sort", i !== sorted.column ? "none" : sorted.down ? "descending" : "ascending");
    });
    count.textContent = found.length > mostRows ? `${mostRows} of ${found.length} shown` : `${found.length} ${found.length === 1 ? "app" : "apps"}`;
    replace(body, ...found.slice(0, mostRows).map((app) => make("tr", {}, ...columns.map((column) =>
      make("td", { className: column.number ? "number" : "" }, column.cell ? column.cell(app) : column.of(app))))));
  }

  const clock = setInterval(draw, 5000);
  return {
    feed: "/api/v1/live",
    update(value) {
      if (value.apps) apps = new Map(value.apps.map((app) => [app.app, app]));
      for (const app of value.changed || []) apps.set(app.app, app);
      for (const id of value.gone || []) apps.delete(id);
      warnings.textContent = (value.warnings || []).join(" ");
      cancelAnimationFrame(drawing);
      drawing = requestAnimationFrame(draw);
    },
    close() {
      clearInterval(clock);
    },
  };
}
