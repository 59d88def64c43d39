import { make } from "./dom.js";

// mostText is how many characters of a log the page keeps: the newest.
const mostText = 2_000_000;

// showLog follows the log of an instance in place of what is there.
export function showLog(place, api, instance) {
  let stop = new AbortController();
  let text = "";
  const stream = make("select", { onchange: open, "aria-label": "stream" },
    ...["stdout", "stderr", "agent"].map((name) => make("option", {}, name)));
  const search = make("input", { type: "search", placeholder: "lines with", oninput: draw, "aria-label": "show lines with" });
  const out = make("pre", { className: "log", tabIndex: 0 });
  place.replaceChildren(
    make("h2", {}, instance),
    make("div", { className: "tools" }, stream, search),
    out,
  );

  function draw() {
    const atEnd = out.scrollTop + out.clientHeight >= out.scrollHeight - 4;
    const word = search.value;
    out.textContent = word ? text.split("\n").filter((line) => line.includes(word)).join("\n") : text;
    if (atEnd) out.scrollTop = out.scrollHeight;
  }

  async function open() {
    stop.abort();
    stop = new AbortController();
    text = "";
    draw();
    const path = `${api}/logs/${encodeURIComponent(instance)}/${stream.value}?follow=true&tail=1000`;
    try {
      const answer = await fetch(path, { signal: stop.signal });
      if (!answer.ok) {
        text = (await answer.json()).error;
        draw();
        return;
      }
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let drawn = 0; ;) {
        const { value, done } = await reader.read();
        if (done) break;
        text = (text + value).slice(-mostText);
        if (performance.now() - drawn > 100) {
          draw();
          drawn = performance.now();
        } else {
          requestAnimationFrame(draw);
        }
      }
      draw();
    } catch (error) {
      if (error.name !== "AbortError") {
        text += "\n" + error;
        draw();
      }
    }
  }

  open();
  return { close: () => stop.abort() };
}
