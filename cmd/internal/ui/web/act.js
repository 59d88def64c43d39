import { make } from "./dom.js";

// send asks the server to act, and gives its answer.
export async function send(path, body) {
  const answer = await fetch(path, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
  const value = await answer.json();
  if (!answer.ok) throw new Error(value.error);
  return value;
}

// post is send, and gives what was said.
const post = (path, body) => send(path, body).then((value) => value.said || "done");

// ask opens a dialog with a question and fields; act is done with it open, and what comes of it, a text or an element, is
// said there.
export function ask({ title, body, button, bad, act }) {
  const said = make("div", { role: "status", className: "said" });
  const go = make("button", { type: "submit", className: bad ? "bad" : "" }, button);
  const leave = make("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
  const form = make("form", { method: "dialog" }, make("h2", { id: "dialog-title" }, title), body, said,
    make("div", { className: "tools" }, go, leave));
  const dialog = make("dialog", { onclose: () => dialog.remove() }, form);
  dialog.setAttribute("aria-labelledby", "dialog-title");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    go.disabled = true;
    said.textContent = "asking …";
    said.classList.remove("bad");
    try {
      said.replaceChildren(await act());
      go.hidden = true;
      leave.textContent = "Close";
      leave.focus();
    } catch (error) {
      said.textContent = error.message;
      said.classList.add("bad");
      go.disabled = false;
    }
  });
  document.body.append(dialog);
  dialog.showModal();
}

export const path = (app, rest) => `/api/v1/apps/${encodeURIComponent(app)}/${rest}`;

export function askStop(app) {
  const save = make("input", { type: "checkbox" });
  const grace = make("input", { type: "number", min: 0, step: "any", placeholder: "the app's own" });
  ask({
    title: `Stop ${app}?`, button: "Stop", bad: true,
    body: make("div", { className: "fields" },
      make("p", {}, "Every process gets its stop signal and its grace. Checkpoints are kept; the verdict is stopped."),
      make("label", {}, "Grace in seconds ", grace),
      make("label", {}, save, " Save the outputs first")),
    act: () => post(path(app, "stop"), { save: save.checked, ...(grace.value ? { grace: Number(grace.value) } : {}) }),
  });
}

export function askSave(app) {
  ask({
    title: `Save the outputs of ${app}?`, button: "Save",
    body: make("p", {}, "Every instance copies the folders of its outputs while its process runs on."),
    act: () => post(path(app, "save"), {}),
  });
}

// askFlex shows what other counts would stop, start and restart before it asks for them.
export function askFlex(app, counts) {
  const fields = Object.entries(counts).map(([name, n]) => [name, make("input", { type: "number", min: 0, value: n, required: true })]);
  const plan = make("dl");
  const wanted = () => Object.fromEntries(fields.map(([name, field]) => [name, Number(field.value)]));
  async function explain() {
    const answer = await fetch(path(app, "flex?" + new URLSearchParams(wanted())));
    const value = await answer.json();
    const rows = answer.ok ?
      [["Stops", value.stops], ["Starts", value.starts], ["Restarts", value.restarts], ["Why", [value.why]], ["Keeps", value.keeps || []]] :
      [["Refused", [value.error]]];
    plan.replaceChildren(...rows.filter(([, list]) => list.length).flatMap(([name, list]) =>
      [make("dt", {}, name), make("dd", {}, list.join(", "))]));
  }
  for (const [, field] of fields) field.addEventListener("input", explain);
  ask({
    title: `How many instances of ${app}?`, button: "Change",
    body: make("div", { className: "fields" }, ...fields.map(([name, field]) => make("label", {}, name + " ", field)), plan),
    act: () => post(path(app, "flex"), { counts: wanted() }),
  });
  explain();
}

const holdTimes = [[3600, "1 hour"], [4 * 3600, "4 hours"], [24 * 3600, "1 day"], [7 * 24 * 3600, "7 days"]];

export function askHold(app, instance) {
  const time = make("select", {}, ...holdTimes.map(([seconds, name]) => make("option", { value: seconds }, name)));
  ask({
    title: `Keep the container of ${app}/${instance}?`, button: "Extend",
    body: make("div", { className: "fields" },
      make("p", {}, "It keeps its limits, GPUs and ports for that time, counted from now."),
      make("label", {}, "For ", time)),
    act: () => post(path(app, `instances/${encodeURIComponent(instance)}/hold`), { for: Number(time.value) }).then(() => "extended"),
  });
}

export function askRelease(app, instance) {
  ask({
    title: `Release the container of ${app}/${instance}?`, button: "Release", bad: true,
    body: make("p", {}, "What is in it and was saved nowhere is lost. What would have followed the failure follows now."),
    act: () => post(path(app, `instances/${encodeURIComponent(instance)}/hold`), { for: 0 }).then(() => "released"),
  });
}

export function askSignal(app, instance) {
  const signal = make("select", {}, ...["TERM", "INT", "KILL", "HUP", "USR1", "USR2", "QUIT", "STOP", "CONT"].map((name) => make("option", {}, name)));
  ask({
    title: `Signal ${app}/${instance}?`, button: "Send", bad: true,
    body: make("div", { className: "fields" },
      make("p", {}, "The process gets the signal. If it ends, it is restarted while its budget lasts."),
      make("label", {}, "Signal ", signal)),
    act: () => post(path(app, `instances/${encodeURIComponent(instance)}/signal`), { signal: signal.value }).then(() => "sent"),
  });
}
