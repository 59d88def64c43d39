import { make, moment } from "./dom.js";
import { ask, path, send } from "./act.js";

const times = [[3600, "1 hour"], [12 * 3600, "12 hours"], [24 * 3600, "1 day"], [7 * 24 * 3600, "7 days"]];

// askKey makes a key for an app's ssh servers, downloads it, and says how to log in by it.
export function askKey(app) {
  const time = make("select", {}, ...times.map(([seconds, name]) => make("option", { value: seconds, selected: seconds === 12 * 3600 }, name)));
  ask({
    title: `Download a key for ${app}?`, button: "Download",
    body: make("div", { className: "fields" },
      make("p", {}, "Whoever has the file may log in to every instance of this run, and run programs there. It is made for this download and kept nowhere else."),
      make("label", {}, "Valid for ", time)),
    act: () => send(path(app, "key"), { for: Number(time.value) }).then(downloaded),
  });
}

function downloaded(issued) {
  const url = URL.createObjectURL(new Blob([issued.key], { type: "application/octet-stream" }));
  make("a", { href: url, download: issued.file }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000); // the browser has begun to read it by then
  return make("div", { className: "fields" },
    make("p", {}, `${issued.file} is valid until ${moment(issued.until)}, and at most until the run ends. In the folder of the download:`),
    line("chmod 600 " + issued.file),
    ...issued.servers.flatMap((one) => [
      make("p", {}, `${one.instance}, whose host key is `, make("code", {}, one.host_key)),
      line(one.command),
    ]));
}

// line is a text to type, with a button that copies it.
function line(text) {
  const code = make("code", {}, text);
  const copy = make("button", { type: "button", onclick: take, "aria-label": "copy " + text }, "Copy");

  async function take() {
    try {
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
    } catch { // of a browser that lets no page do so
      getSelection().selectAllChildren(code);
    }
  }

  return make("div", { className: "line" }, code, copy);
}
