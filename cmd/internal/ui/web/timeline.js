import { make, moment, scroll, span } from "./dom.js";

const svgName = "http://www.w3.org/2000/svg";

function draw(name, attributes, ...children) {
  const element = document.createElementNS(svgName, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const row = 18, label = 110, width = 900, mostRows = 200;

// showTimeline draws which phase each instance was in, where generations began, and where the time went.
export function showTimeline(place, api) {
  const picture = scroll("phases");
  const facts = make("dl");
  const why = make("ol", { className: "generations" });
  const saves = make("ul", { "aria-label": "saves" });
  place.replaceChildren(make("h2", {}, "Timeline"), why, picture, facts, saves);
  let shown = "";

  // update asks again; the page calls it when the app has changed.
  let asking = false, again = false;

  async function update() {
    if (asking) {
      again = true;
      return;
    }
    asking = true;
    try {
      await ask();
    } finally {
      asking = false;
    }
    if (again) {
      again = false;
      setTimeout(update, 1000);
    }
  }

  async function ask() {
    const answer = await fetch(`${api}/timeline`);
    const text = await answer.text();
    if (text === shown) return;
    shown = text;
    const value = JSON.parse(text);
    if (!answer.ok) {
      facts.replaceChildren(make("dt", {}, "Not known"), make("dd", {}, value.error));
      return;
    }
    why.replaceChildren(...value.generations.map((one) =>
      make("li", { value: one.generation }, moment(one.at), one.why ? ": " + one.why : "")));
    saves.replaceChildren(...value.saves.map((one) => make("li", {}, `${moment(one.at)} ${one.instance}: ${one.text}`)));
    picture.replaceChildren(chart(value));
    const all = Object.values(value.spent).reduce((sum, each) => sum + each, 0);
    const share = (part) => ` (${(100 * part / all).toFixed(1)} %)`;
    facts.replaceChildren(...(all > 0 ? Object.entries(value.spent).filter(([, each]) => each > 0).flatMap(([kind, each]) =>
      [make("dt", { className: "spent-" + kind }, kind), make("dd", {}, span(each) + share(each))]) : []),
      ...(value.unreachable ? [make("dt", {}, "no answer from"), make("dd", {}, value.unreachable.join(", "))] : []));
  }
  return { update };
}

function chart(value) {
  const names = [...new Set(value.spans.map((one) => one.instance))].slice(0, mostRows);
  const from = Math.min(...value.spans.map((one) => +new Date(one.from)));
  const end = (one) => one.to ? +new Date(one.to) : Date.now();
  const to = Math.max(from + 1, ...value.spans.map(end));
  const x = (at) => label + (width - label) * (at - from) / (to - from);
  const height = names.length * row + 4;
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, class: "timeline", role: "img" });
  picture.setAttribute("aria-label", `phases of ${names.length} instances; the generations above and the table below say the same`);
  names.forEach((name, i) => picture.append(draw("text", { x: 0, y: i * row + 13 }, name)));
  for (const one of value.spans) {
    const i = names.indexOf(one.instance);
    if (i < 0) continue;
    const bar = (a, b, name) => {
      if (b <= a) return;
      picture.append(draw("rect", { x: x(a), y: i * row + 3, width: Math.max(1, x(b) - x(a)), height: row - 6, class: "span-" + name },
        draw("title", {}, `${one.instance}: ${name}, generation ${one.generation}, attempt ${one.attempt}, ${span((b - a) / 1000)}` +
          (one.why ? `; ${one.why}` : ""))));
    };
    if (one.phase !== "running") {
      bar(+new Date(one.from), end(one), one.phase);
      continue;
    }
    const kept = one.kept ? +new Date(one.kept) : end(one);
    bar(+new Date(one.from), kept, "running");
    bar(kept, end(one), "lost");
  }
  for (const one of value.generations) {
    const at = x(+new Date(one.at));
    picture.append(draw("line", { x1: at, x2: at, y1: 0, y2: height, class: "generation" }, draw("title", {}, `generation ${one.generation}`)));
  }
  return picture;
}
