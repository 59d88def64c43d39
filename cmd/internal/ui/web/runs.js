import { make, moment, scroll, span, word } from "./dom.js";

const columns = [
  ["Run", (one, app) => make("a", { href: address(app, one.run) }, one.run)],
  ["Started", (one) => moment(one.started)],
  ["Ended", (one) => moment(one.ended)],
  ["Took", (one) => span((new Date(one.ended) - new Date(one.started)) / 1000)],
  ["Outcome", (one) => word(one.outcome)],
  ["Cause", (one) => one.cause || ""],
  ["Generations", (one) => one.generations ? String(one.generations) : ""],
  ["User", (one) => one.user],
  ["Launcher", (one) => one.launcher],
];

// address is where the page shows an app, or one of its runs that are over.
export function address(app, run) {
  return "/apps/" + encodeURIComponent(app) + (run ? "/runs/" + encodeURIComponent(run) : "");
}

// showRuns shows the runs of an app that the history store has; where it has none there is nothing to see.
export function showRuns(place, app, current) {
  let known = [], looking = false;

  async function look() {
    if (looking) return;
    looking = true;
    try {
      const answer = await fetch(`/api/v1/apps/${encodeURIComponent(app)}/runs`);
      const value = await answer.json();
      if (answer.ok) draw(value.runs);
      else place.replaceChildren(make("h2", {}, "Runs"), make("p", { className: "dim" }, value.error));
    } catch {
      // the feed says that the server does not answer
    } finally {
      looking = false;
    }
  }

  function draw(runs) {
    known = runs;
    place.replaceChildren(...(runs.length === 0 ? [] : [make("h2", {}, "Runs"), scroll("runs", make("table", {},
      make("thead", {}, make("tr", {}, ...columns.map(([name]) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, ...runs.map((one) => make("tr", one.run === current ? { "aria-current": "true" } : {},
        ...columns.map(([, cell]) => make("td", {}, cell(one, app)))))))) ]));
  }

  look();
  return {
    // ended looks again for a run that is over: its agents leave it in the store at their end.
    ended(run) {
      if (!known.some((one) => one.run === run)) look();
    },
  };
}
