// follow hands each change of a feed to update, and tells how the connection stands.
export function follow(feed, update, say) {
  say("connecting …");
  const source = new EventSource(feed);
  source.onopen = () => say("");
  source.onmessage = (event) => {
    const value = JSON.parse(event.data);
    if (value.error) {
      say(value.error);
      return;
    }
    say("");
    update(value);
  };
  let gone = "the server does not answer; this is what it said last";
  source.addEventListener("end", (event) => say(gone = event.data));
  source.onerror = () => say(gone);
  return () => source.close();
}

// once hands what does not change to update.
export function once(from, update, say) {
  const stop = new AbortController();
  say("loading …");
  fetch(from, { signal: stop.signal }).then((answer) => {
    const json = (answer.headers.get("Content-Type") || "").startsWith("application/json");
    if (!json) return answer.text().then((text) => ({ error: text.trim() || "the server answers " + answer.status }));
    return answer.json();
  }).then((value) => {
    say(value.error || "");
    if (!value.error) update(value);
  }).catch((error) => { if (error.name !== "AbortError") say("the server does not answer"); });
  return () => stop.abort();
}
