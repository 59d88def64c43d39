package page

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/muster-agent/muster/tests/child"
	"github.com/muster-agent/muster/tests/folder"
)

// The page of one run stays open to its end: who stops the run there sees the verdict, and that the page has ended.
func TestRunPage(t *testing.T) {
	b := newBrowser(t)
	dir := folder.Temp(t, "page-")
	log := filepath.Join(dir, "run.log")
	cmd := exec.Command(muster, "run", "-n", "1", "--app-id", "d1", "--work-dir", filepath.Join(dir, "w"), "--state-dir", filepath.Join(dir, "s"),
		"--ui", "--", "sleep", "600")
	cmd.Dir = dir
	run, err := child.StartLogged(cmd, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := run.End(syscall.SIGTERM, watchdog); err != nil {
			t.Error(err)
		}
	})
	printed := regexp.MustCompile(`(?m)^page (http://\S+)$`)
	var link []string
	await(t, "the link", func() bool {
		text, err := os.ReadFile(log)
		link = printed.FindStringSubmatch(string(text))
		return err == nil && link != nil
	})
	b.do("open", chromedp.Navigate(link[1]))
	b.press("tbody", "d1")
	b.awaitText("td", "running")
	b.press(".acts", "Stop …")
	b.press("dialog", "Stop")
	b.awaitText("dd", "stopped")
	b.await("no more acts", nothingToActWith)
	b.awaitText("#state", "the run is over, and this page with it")
}
