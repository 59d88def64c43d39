package page

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/muster-agent/muster/tests/folder"
)

// nosy is a board whose script asks its own server, and then the ui with whatever the browser sends there.
const nosy = `<title>board</title><body><script>
const ui = new URLSearchParams(location.search).get("ui");
const said = (name, text) => document.body.append(name + ": " + text + "; ");
(async () => {
  said("own", (await (await fetch("data.txt")).text()).trim());
  try { said("ui", (await (await fetch(ui + "/api/v1/apps", { credentials: "include" })).text())); } catch { said("ui", "refused"); }
  try { await fetch(ui + "/api/v1/apps/b1/stop", { method: "POST", mode: "no-cors", credentials: "include", body: "{}" }); } catch {}
  const frame = document.createElement("iframe");
  frame.src = ui + "/apps/b1";
  frame.onload = () => { let there = "closed"; try { there = frame.contentDocument.body.innerText; } catch {} said("frame", there); };
  document.body.append(frame);
})();
</script>`

// A board opens from the page of its app, in a browser that goes to a name of its own for it, and its script gets
// nothing of the ui with the session of who looks at it. The key that its agent asks for is shown by the ui.
func TestBoard(t *testing.T) {
	h := newHost(t)
	folder.Lay(t, h.dir, map[string]string{
		"app/metainfo.json": lay(t, object{"schemaVersion": "2.1", "application": object{
			"name": "b", "version": "1", "components": []object{{"name": "worker", "category": "MASTER", "compExports": "worker-board"}},
			"exportGroups": []object{{"name": "worker", "exports": []object{{"name": "board", "value": "http://${worker_HOST}:${site.side.board}/"}}}},
		}}),
		"app/appConfig.json": lay(t, object{"schema": schema, "metadata": object{}, "components": object{}, "global": object{
			"muster.framework": "none", "muster.command": "echo begun; exec sleep 600", "muster.side.board.port": "true", "muster.side.board.http": "true",
			"muster.side.board.key": "true",
			"muster.side.board":     `exec python3 -m http.server --directory "${AGENT_WORK_ROOT}/app/definition/package/files" --bind 127.0.0.1 "$MUSTER_PORT_SIDE_BOARD_INNER"`,
		}}),
		"app/resources.json": lay(t, object{"schema": schema, "metadata": object{}, "global": object{}, "components": object{
			"worker": object{"yarn.role.priority": "1", "yarn.component.instances": "1", "yarn.memory": "128"},
		}}),
		"app/package/files/index.html": nosy, "app/package/files/data.txt": "hello\n", "w/": "",
	})
	run := h.start("run", "run", filepath.Join(h.dir, "app"), "--app-id", "b1", "--work-dir", filepath.Join(h.dir, "w"), "--engine", "process")
	await(t, "the process", func() bool { return strings.Contains(h.said("w/log/worker-0/stdout.log"), "begun") })
	b := newBrowser(t)
	base := h.open(b)
	b.do("the app", chromedp.Navigate(base+"/apps/b1"))
	b.await("a link to the board", `[...document.querySelectorAll("dd a")].some(a => a.getAttribute("href") === "/apps/b1/proxy/worker-0/worker.board")`)
	b.do("the board", chromedp.Navigate(base+"/apps/b1/proxy/worker-0/worker.board/index.html?ui="+base))
	b.await("what its script has found", `document.body.innerText.includes("frame: ")`)
	var at string
	b.do("where it is", chromedp.Evaluate("location.host", &at))
	if text := b.text(); !strings.HasSuffix(strings.Split(at, ":")[0], ".localhost") || !strings.Contains(text, "own: hello; ui: refused; ") ||
		strings.Contains(text, "b1") {
		t.Errorf("at %s the board's script says %q", at, text)
	}
	if run.Ended(0) || strings.Contains(h.said("ui"), "msg=asked") {
		t.Error("the board's script has stopped the run")
	}
}
