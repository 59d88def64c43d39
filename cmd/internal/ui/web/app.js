import { make, moment, word } from "./dom.js";
import { showLog } from "./log.js";
import { askFlex, askSave, askStop } from "./act.js";
import { showCurves } from "./curves.js";
import { showInstances } from "./instances.js";
import { showTerminal } from "./terminal.js";
import { showTimeline } from "./timeline.js";

// showApp shows one app: how it stands, its instances, and the log of the one that is chosen.
export function showApp(main, id, me) {
  const title = make("h2");
  const facts = make("dl");
  const table = make("div");
  const logs = make("section", { "aria-label": "log" });
  const use = make("section", { "aria-label": "use" });
  const passed = make("section", { "aria-label": "timeline" });
  let counts = {};
  const acts = make("div", { className: "tools acts", hidden: !me.act },
    make("button", { onclick: () => askStop(id) }, "Stop …"),
    make("button", { onclick: () => askSave(id) }, "Save …"),
    make("button", { onclick: () => askFlex(id, counts) }, "Counts …"));
  let log = null;
  main.append(
    title,
    facts,
    acts,
    table,
    passed,
    use,
    logs,
  );
  const line = showTimeline(passed, id);
  const curves = showCurves(use, id);
  const instances = showInstances(table, id, { act: me.act, openLog, openShell });

  function openLog(instance) {
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
      instances.update(app.instances, !app.verdict);
    },
    close() {
      curves.close();
      instances.close();
      if (log) log.close();
    },
  };
}
