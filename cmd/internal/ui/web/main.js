// The page: all apps at /, one app at /apps/ID, one of its runs that are over at /apps/ID/runs/RUN. Every text of strangers is set as text, never as markup.
import { make } from "./dom.js";
import { follow, once } from "./live.js";
import { showList } from "./list.js";
import { showApp } from "./app.js";

const main = document.getElementById("main");
const state = document.getElementById("state");
let leave = () => {};

function say(text) {
  if (state.textContent !== text) state.textContent = text;
}

function route() {
  leave();
  main.replaceChildren();
  const [, kind, id, , run] = location.pathname.split("/").map(decodeURIComponent);
  const view = kind === "apps" ? showApp(main, id, run, me) : showList(main);
  document.title = kind === "apps" ? id + (run ? ", run " + run : "") + " – muster" : "muster";
  const stop = view.feed ? follow(view.feed, view.update, say) : once(view.from, view.update, say);
  leave = () => { stop(); view.close(); };
}

// Links within the page keep it; all others are the browser's.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a");
  const ours = link && link.origin === location.origin && !link.target && /^\/(apps\/[^/]+(\/runs\/[^/]+)?)?$/.test(link.pathname);
  if (!ours || event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
  event.preventDefault();
  history.pushState(null, "", link.href);
  route();
  main.focus();
});
addEventListener("popstate", route);

const me = await (await fetch("/api/v1/me")).json();
if (me.name) {
  const out = make("button", { onclick: logOut }, "Log out");
  document.getElementById("user").append(me.name + (me.act ? " " : ", who may look "), out);
}

async function logOut() {
  await fetch("/logout", { method: "POST" });
  location.assign("/login");
}

route();
