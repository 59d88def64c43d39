package page

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/muster-agent/muster/tests/folder"
)

// hostile is what a program may print: markup, and what would steer a terminal.
const hostile = `<img src=none onerror="document.title='owned'"><b class="owned">bold</b> \033]0;owned\007\033[2Jend of it`

// Who acts by the page sees what comes of it: a save in the list of saves, other counts in the table. Rows stand in the order that
// was asked for, and what a program prints is text.
func TestActs(t *testing.T) {
	h := newHost(t)
	folder.Lay(t, h.dir, map[string]string{
		"app/metainfo.json": lay(t, object{"schemaVersion": "2.1", "application": object{"name": "b", "components": []object{{"name": "worker"}}}}),
		"app/appConfig.json": lay(t, object{"schema": schema, "global": object{
			"muster.framework": "none", "muster.output.model": "out",
			"muster.command": "echo $MUSTER_INDEX >model/step; printf '%b\\n' " + "'" + strings.ReplaceAll(hostile, "'", `'\''`) + "'; exec sleep 600",
		}}),
		"app/resources.json": lay(t, object{"schema": schema, "components": object{
			"worker": object{"yarn.role.priority": "1", "yarn.component.instances": "1", "yarn.memory": "128"},
		}}),
		"w/": "",
	})
	for _, id := range []string{"first", "second"} {
		h.start(id, "run", filepath.Join(h.dir, "app"), "--app-id", id, "--work-dir", filepath.Join(h.dir, "w", id), "--engine", "process")
	}
	b := newBrowser(t)
	base := h.open(b)
	order := func(names string) {
		t.Helper()
		b.await("the order "+names, `[...document.querySelectorAll('tbody tr')].map((row) => row.querySelector("a, button").textContent).join(" ") === "`+names+`"`)
	}
	b.awaitText("tbody", "first")
	b.awaitText("tbody", "second")
	b.press("thead", "App")
	order("first second")
	b.press("thead", "App")
	order("second first")

	b.do("the app", chromedp.Navigate(base+"/apps/first"))
	b.await("its process", rowIs("worker-0", "Phase", "running"))
	b.press("tbody", "worker-0")
	b.awaitText(".log", "end of it")
	b.await("text alone", `document.querySelector(".log").textContent.includes("<img src=none") && !document.querySelector(".owned, .log img") && document.title !== "owned"`)

	b.press(".acts", "Save …")
	b.press("dialog", "Save")
	b.await("the answer", `/^(done|asked|first: )/.test(document.querySelector("dialog .said").textContent)`)
	b.press("dialog", "Close")
	b.awaitText(`ul[aria-label="saves"] li`, "worker-0: ")

	b.press(".acts", "Counts …")
	b.do("two of them", chromedp.Evaluate(`(() => {
		const field = document.querySelector('dialog input[type="number"]');
		field.value = 2;
		field.dispatchEvent(new Event("input"));
		return 0;
	})()`, nil))
	b.awaitText("dialog dd", "worker-1")
	b.press("dialog", "Change")
	b.await("the answer", `document.querySelector("dialog .said").textContent !== "asking …"`)
	b.press("dialog", "Close")
	b.await("the second process", rowIs("worker-1", "Phase", "running"))
	for _, e := range *b.errors {
		t.Errorf("the page's code: %s", e)
	}
}
