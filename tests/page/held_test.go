package page

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"github.com/muster-agent/muster/tests/leash"
	"github.com/muster-agent/muster/tests/need"
)

// A container of a failed process is held: the page shows until when, and extends it. A key that it makes logs OpenSSH's
// client in by the line that it shows. Released, the failure counts.
func TestHeld(t *testing.T) {
	client, err := exec.LookPath("ssh")
	if err != nil {
		need.Skip(t, "needs OpenSSH's client (Debian: openssh-client)")
	}
	h := newHost(t)
	b := newBrowser(t)
	args := []string{"run", "--app-id", "k1", "--work-dir", filepath.Join(h.dir, "w"), "--engine", "process", "-n", "2"}
	for _, set := range []string{"muster.restart=never", "muster.hold=1h", "muster.ssh=true"} {
		args = append(args, "--set", set)
	}
	run := h.start("run", append(args, "--", "sh", "-c", "[ $MUSTER_INDEX = 1 ] && exec sleep 600; echo fails; exit 3")...)
	h.open(b)
	b.awaitText("td", "k1")
	b.press("tbody", "k1")

	// held for an hour, then for a day
	b.awaitText("td", "holding")
	b.await("an hour less some seconds", left("59 min"))
	b.await("no signal of what has no process", fmt.Sprintf(`![...document.querySelectorAll(%q)].some((one) => one.textContent.startsWith("Signal"))`, row("worker-0")+" button"))
	b.accessible("a held instance")
	b.press(row("worker-0"), "Extend …")
	b.do("for a day", chromedp.SetValue("dialog select", "86400"))
	b.accessible("how long")
	b.press("dialog", "Extend")
	b.awaitText("dialog .said", "extended")
	b.press("dialog", "Close")
	b.await("a day less some seconds", left("23 h"))

	// a key
	downloads := t.TempDir()
	b.do("where downloads go", chromedp.ActionFunc(func(ctx context.Context) error {
		return cdpbrowser.SetDownloadBehavior(cdpbrowser.SetDownloadBehaviorBehaviorAllow).WithDownloadPath(downloads).Do(ctx)
	}))
	b.press(".acts", "SSH key …")
	b.press("dialog", "Download")
	b.awaitText("dialog code", "muster@")
	b.accessible("how to log in")
	b.look(360, "light")
	b.fits("how to log in")
	b.look(1280, "light")
	key := filepath.Join(downloads, "muster-k1.key")
	await(t, "the download", func() bool {
		text, err := os.ReadFile(key)
		return err == nil && strings.HasSuffix(string(text), "-----END OPENSSH PRIVATE KEY-----\n")
	})
	var lines []string
	b.do("the lines to type", chromedp.Evaluate(`[...document.querySelectorAll("dialog .line code")].map((one) => one.textContent)`, &lines))
	if len(lines) != 3 || lines[0] != "chmod 600 muster-k1.key" {
		t.Fatalf("the lines: %q", lines)
	}
	said := typed(t, downloads, client, lines[0]+" && "+lines[1]+` -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=known 'echo I am $MUSTER_INSTANCE'`)
	if !strings.Contains(said, "I am worker-0\n") {
		t.Errorf("logged in: %s", said)
	}
	shown := typed(t, downloads, client, "ssh-keygen -lf known")
	b.await("the fingerprint of the host's key", fmt.Sprintf(`[...document.querySelectorAll("dialog p code")].some((one) => one.textContent !== "" && %q.includes(one.textContent))`, shown))
	b.press("dialog", "Close")
	secret, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	middle := string(bytes.Split(secret, []byte("\n"))[2])
	if text := h.said("ui"); !strings.Contains(text, "act=/api/v1/apps/k1/key") || strings.Contains(text, middle) || strings.Contains(b.text(), middle) {
		t.Errorf("the server's log:\n%s", text)
	}
	if out, err := h.command("events", "k1/worker-0").CombinedOutput(); err != nil || !strings.Contains(string(out), "login") {
		t.Errorf("the events name no login: %v\n%s", err, out)
	}

	// released
	b.press(row("worker-0"), "Release …")
	b.press("dialog", "Release")
	b.awaitText("dialog .said", "released")
	b.press("dialog", "Close")
	b.awaitText("dd", "failed: worker-0 exited with 3")
	if !run.Ended(watchdog) {
		t.Error("the run goes on")
	}
	for _, e := range *b.errors {
		t.Errorf("the page's code: %s", e)
	}
}

// left is true when worker-0 is held for a time that begins like that.
func left(text string) string {
	return fmt.Sprintf("document.querySelector(%q)?.textContent.startsWith(%q)", row("worker-0")+" [data-until]", "in "+text)
}

// typed is what a shell says to a line, in a folder.
func typed(t *testing.T, dir, client, line string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(client)+":"+os.Getenv("PATH"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := leash.Run(cmd, watchdog); err != nil {
		t.Errorf("%s: %v: %s", line, err, out.String())
	}
	return out.String()
}
