// make builds an element: properties, then children, which may be texts.
export function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in element) element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// scroll is a place for what may be wider than the window.
export function scroll(name, ...children) {
  return make("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": name }, ...children);
}

// replace puts new children into an element and leaves the focus where it was: on what has the same data-key.
export function replace(element, ...children) {
  const focused = element.contains(document.activeElement) ? document.activeElement.getAttribute("data-key") : null;
  element.replaceChildren(...children);
  if (focused) element.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

const tones = {
  failed: "bad", killed: "bad", lost: "bad", missing: "bad", fenced: "bad",
  backoff: "warn", interrupted: "warn", stopping: "warn", stopped: "warn", leaving: "warn", superseded: "warn",
  running: "good", succeeded: "good",
};

// word is a phase or an outcome in its colour.
export function word(text) {
  return make("span", { className: tones[text] || "" }, text || "");
}

// moment is a time as people say it: of today without the date.
export function moment(text) {
  if (!text) return "";
  const at = new Date(text);
  const today = at.toDateString() === new Date().toDateString();
  return today ? at.toLocaleTimeString() : at.toLocaleString();
}

// span is a number of seconds in at most two units.
export function span(seconds) {
  if (seconds === null || seconds === undefined) return "";
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const parts = [];
  let left = Math.round(seconds);
  for (const [unit, size] of units) {
    if (left >= size || (unit === "s" && parts.length === 0)) {
      parts.push(Math.floor(left / size) + " " + unit);
      left %= size;
    }
    if (parts.length === 2) break;
  }
  return parts.join(" ");
}
