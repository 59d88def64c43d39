import { make } from "./dom.js";

// showTerminal opens a shell beside an instance's process, in place of what is there; null: something else was put in
// its place before it was opened.
export async function showTerminal(place, app, instance) {
  const style = make("link", { rel: "stylesheet", href: "/web/parts/xterm.css" });
  const box = make("div", { className: "terminal" });
  const state = make("p", { role: "status" });
  place.replaceChildren(make("h2", {}, `${instance}: shell`), style, state, box);
  let Terminal, FitAddon;
  try {
    [{ Terminal }, { FitAddon }] = await Promise.all([import("/web/parts/xterm.js"), import("/web/parts/xterm-fit.js")]);
  } catch {
    state.textContent = `This muster was built without a terminal; on a command line: muster exec ${app}/${instance} -- sh`;
    return { close() {} };
  }
  if (!box.isConnected) return null;
  const screen = new Terminal({ screenReaderMode: true, fontSize: 13, fontFamily: "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace", scrollback: 5000 });
  const fit = new FitAddon();
  screen.loadAddon(fit);
  screen.open(box);
  fit.fit();
  const stop = new AbortController();
  const post = (path, body) => fetch(path, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal: stop.signal,
  });
  const size = () => ({ rows: screen.rows, cols: screen.cols });

  let input = "", resized = null, sending = false, id = "";
  // send brings what was typed, one request after the other: the order of keys counts.
  async function send() {
    if (sending || !id) return;
    sending = true;
    while (input || resized) {
      const body = { input: input.slice(0, 8192), ...(resized || {}) };
      input = input.slice(8192);
      resized = null;
      try {
        await post("/api/v1/terminals/" + id, body);
      } catch {
        break;
      }
    }
    sending = false;
  }
  screen.onData((text) => { input += text; send(); });
  screen.onResize(() => { resized = size(); send(); });
  const watch = new ResizeObserver(() => fit.fit());
  watch.observe(box);
  screen.focus();

  (async () => {
    try {
      const answer = await post(`/api/v1/apps/${encodeURIComponent(app)}/instances/${encodeURIComponent(instance)}/terminal`, size());
      if (!answer.ok) {
        state.textContent = (await answer.json()).error;
        return;
      }
      id = answer.headers.get("Muster-Terminal");
      send();
      const reader = answer.body.getReader();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        screen.write(value);
      }
    } catch (error) {
      if (error.name !== "AbortError") state.textContent = String(error);
    }
  })();
  return {
    close() {
      stop.abort();
      watch.disconnect();
      screen.dispose();
    },
  };
}
