package page

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/muster-agent/muster/cmd/muster-gpu/nvmltest"
	"github.com/muster-agent/muster/tests/child"
	"github.com/muster-agent/muster/tests/folder"
)

// host is one machine with a state folder of its own, on which commands run.
type host struct {
	t      *testing.T
	dir    string
	muster string
	env    []string
}

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{t: t, dir: folder.Temp(t, "host-"), muster: muster}
	folder.Lay(t, h.dir, map[string]string{"home/": ""})
	return h
}

func (h *host) command(args ...string) *exec.Cmd {
	cmd := exec.Command(h.muster, args...)
	cmd.Env = append(append(os.Environ(), h.env...), "HOME="+filepath.Join(h.dir, "home"), "MUSTER_AGENT_STATE_DIR="+filepath.Join(h.dir, "s"))
	return cmd
}

// mockGPUs gives the host eight GPUs, of which only the driver's mock knows.
func (h *host) mockGPUs() {
	h.t.Helper()
	h.muster = filepath.Join(h.dir, "bin", "muster")                                   // beside it a muster-gpu is looked for
	described, err := json.Marshal(nvmltest.Host{First: 300_000_000 + os.Getpid()*10}) // devices that nobody else claims
	if err != nil {
		h.t.Fatal(err)
	}
	folder.Lay(h.t, h.dir, map[string]string{"bin/": "", "gpus.json": string(described)})
	h.env = append(h.env, nvmltest.Environment+"="+filepath.Join(h.dir, "gpus.json"))
	text, err := os.ReadFile(muster)
	if err == nil {
		err = os.WriteFile(h.muster, text, 0o755)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", filepath.Join(h.dir, "bin", "muster-gpu"), "github.com/muster-agent/muster/tests/gpuhelper")
	if out, err := build.CombinedOutput(); err != nil {
		h.t.Fatalf("%s: %v\n%s", build, err, out)
	}
}

// start starts a muster that ends with the test; its output goes to a file of that name.
func (h *host) start(name string, args ...string) *child.Process {
	h.t.Helper()
	p, err := child.StartLogged(h.command(args...), filepath.Join(h.dir, name))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if err := p.End(syscall.SIGTERM, watchdog); err != nil {
			h.t.Error(err)
		}
		if h.t.Failed() {
			h.t.Logf("%s:\n%s", name, h.said(name))
		}
	})
	return p
}

func (h *host) said(name string) string {
	text, _ := os.ReadFile(filepath.Join(h.dir, name)) // it comes
	return string(text)
}

// open starts muster ui, and opens its link.
func (h *host) open(b *browser, args ...string) (base string) {
	h.t.Helper()
	h.start("ui", append([]string{"ui"}, args...)...)
	await(h.t, "the link", func() bool { return linkLine.MatchString(h.said("ui")) })
	link := linkLine.FindString(h.said("ui"))
	b.do("open", chromedp.Navigate(link))
	return link[:strings.Index(link, "/login")]
}

// Of an app that has ended, whose agents have left nothing on any host but in the history store, the page shows each
// run: verdict, instances with their GPUs, timeline and logs.
func TestPast(t *testing.T) {
	h := newHost(t)
	h.mockGPUs()
	b := newBrowser(t)
	store := "file://" + filepath.Join(h.dir, "store")
	for _, code := range []string{"0", "3"} {
		run := h.start("run"+code, "run", "--app-id", "p1", "--work-dir", filepath.Join(h.dir, "w"+code), "--engine", "process",
			"--history", store, "--history-logs", "all", "--set", "muster.restart=never", "-n", "2", "--gpus", "1", "--",
			"sh", "-c", "[ "+code+"$MUSTER_INDEX = 31 ] && exec sleep 600; sleep $((4 * "+code+")); echo ends with "+code+"; exit "+code)
		if !run.Ended(watchdog) {
			t.Fatalf("the run goes on: %s", h.said("run"+code))
		}
		if out, err := h.command("forget", "p1").CombinedOutput(); err != nil {
			t.Fatalf("forget: %v: %s", err, out)
		}
		if err := os.RemoveAll(filepath.Join(h.dir, "w"+code)); err != nil {
			t.Fatal(err)
		}
	}
	base := h.open(b, "--history", store)
	b.awaitText("td", "failed")
	b.press("tbody", "p1")
	b.await("its last run", `/^[/]apps[/]p1[/]runs[/][^/]+$/.test(location.pathname)`)
	b.awaitText("dd", "failed: worker-0 exited with 3")
	for _, name := range []string{"worker-0", "worker-1"} {
		b.awaitText("td", name)
	}
	b.await("when it finished, and how", rowIs("worker-0", "Exit", "3"))
	b.await("its GPU", fmt.Sprintf(`/^Mock NVIDIA A100-SXM4-40GB GPU-[0-9a-f-]+$/.test(document.querySelector(%q)?.textContent)`, row("worker-0")+` [data-column="GPUs"]`))
	b.await("when it started and finished", fmt.Sprintf(`["Started", "Finished"].every((name) => /[0-9]:[0-9]/.test(document.querySelector(%q + "[data-column=" + name + "]")?.textContent))`, row("worker-0")+" "))
	b.await("no column that is empty for all", `![...document.querySelectorAll("th")].some((one) => ["Progress", "Step", "Held until", "Role"].includes(one.textContent))`)
	b.await("what it used", `document.querySelectorAll('section[aria-label="use"] .uplot canvas').length >= 2`)
	b.await("its phases", `document.querySelectorAll(".timeline rect").length > 0`)
	b.awaitText("dt", "staging")
	b.press(".scroll tbody", "worker-0")
	b.awaitText(".log", "ends with 3")
	b.await("two runs", `document.querySelectorAll('section[aria-label="runs"] tbody tr').length === 2`)
	b.await("nothing to act with", nothingToActWith)
	b.accessible("a run that is over")
	b.look(360, "dark")
	b.fits("a run that is over")
	b.accessible("a run that is over, 360 px, dark")
	b.look(1280, "light")

	// the one before, also by its address alone
	b.do("the earlier run", chromedp.Evaluate(`[...document.querySelectorAll('section[aria-label="runs"] tbody tr')].find((row) => row.textContent.includes("succeeded")).querySelector("a").click(); 0`, nil))
	b.awaitText("dd", "succeeded")
	b.do("its address", chromedp.Reload())
	b.awaitText("dd", "succeeded")
	b.await("its exit", rowIs("worker-0", "Exit", "0"))
	b.press(".scroll tbody", "worker-0")
	b.awaitText(".log", "ends with 0")

	// the app itself is its last run, as nothing else knows it
	b.do("the app", chromedp.Navigate(base+"/apps/p1"))
	b.awaitText("dd", "failed: worker-0")
	b.await("its runs", `document.querySelectorAll('section[aria-label="runs"] tbody tr').length === 2`)
	for _, e := range *b.errors {
		t.Errorf("the page's code: %s", e)
	}
}
