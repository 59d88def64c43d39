import { make, moment, word } from "./dom.js";
import { showLog } from "./log.js";
import { askFlex, askSave, askStop } from "./act.js";
import { showCurves } from "./curves.js";
import { showInstances } from "./instances.js";
import { askKey } from "./key.js";
import { address, showRuns } from "./runs.js";
import { showTerminal } from "./terminal.js";
import { showTimeline } from "./timeline.js";

// showApp shows one app, or one of its runs that are over: how it stands, its instances, and the log of the one that is
// chosen.
export function showApp(main, id, run, me) {
  const api = "/api/v1/apps/" + encodeURIComponent(id) + (run ? "/runs/" + encodeURIComponent(run) : "");
  const title = make("h2");
  const facts = make("dl");
  const table = make("div");
  const logs = make("section", { "aria-label": "log" });
  const use = make("section", { "aria-label": "use" });
  const passed = make("section", { "aria-label": "timeline" });
  const before = make("section", { "aria-label": "runs" });
  let counts = {};
  const key = make("button", { onclick: () => askKey(id), hidden: true }, "SSH key …");
  const acts = make("div", { className: "tools acts", hidden: true },
    make("button", { onclick: () => askStop(id) }, "Stop …"),
    make("button", { onclick: () => askSave(id) }, "Save …"),
    make("button", { onclick: () => askFlex(id, counts) }, "Counts …"), key);
  let log = null;
  main.append(
    title,
    facts,
    acts,
    table,
    passed,
    use,
    logs,
    before,
  );
  const line = showTimeline(passed, api);
  const curves = showCurves(use, api);
  const instances = showInstances(table, id, { act: me.act && !run, openLog, openShell });
  const runs = showRuns(before, id, run);

  function openLog(instance) {
    if (log) log.close();
    log = showLog(logs, api, instance);
    logs.scrollIntoView({ block: "nearest" });
  }

  async function openShell(instance) {
    if (log) log.close();
    log = (await showTerminal(logs, id, instance)) || log;
    logs.scrollIntoView({ block: "nearest" });
  }

  return {
    feed: run ? "" : api + "/live",
    from: api,
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
      add("Run", run ? make("span", {}, run, ", one of ", make("a", { href: address(id) }, id)) : app.run);
      add("Generation", app.generation ? String(app.generation) : "");
      add("Started", moment(app.started));
      add("Ended", app.verdict && moment(app.verdict.at));
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
      const over = Boolean(run || app.outcome);
      acts.hidden = !me.act || over;
      key.hidden = !app.instances.some((row) => row.ports.ssh || row.ports["port.ssh"]);
      counts = (app.directive && (app.directive.target || app.directive.counts)) || {};
      line.update();
      instances.update(app.instances, !over);
      curves.update(!over);
      if (over) runs.ended(app.run);
    },
    close() {
      curves.close();
      instances.close();
      if (log) log.close();
    },
  };
}
