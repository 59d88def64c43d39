package page

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/muster-agent/muster/tests/child"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/netns"
	"github.com/muster-agent/muster/tests/servers/consulserver"
	"github.com/muster-agent/muster/tests/servers/ports"
)

// lab is three hosts, on which a gang trains.
type lab struct {
	t      *testing.T
	net    *netns.Net
	consul *consulserver.Server
	dir    string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{t: t, net: netns.New(t, 3), dir: folder.Temp(t, "page-")}
	l.consul = consulserver.Start(t, consulserver.Options{Net: l.net})
	return l
}

func (l *lab) registry() string { return "consul://" + l.consul.HTTPAddr }

// start runs muster on a host; its output goes to a file of that name.
func (l *lab) start(host int, name string, args ...string) *child.Process {
	l.t.Helper()
	cmd := l.net.Command(host, muster, args...)
	cmd.Env = append(os.Environ(), "MUSTER_REGISTRY="+l.registry(), "HOME="+l.dir)
	p, err := child.StartLogged(cmd, filepath.Join(l.dir, name+".log"))
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		if err := p.End(syscall.SIGTERM, watchdog); err != nil {
			l.t.Error(err)
		}
		if text := l.said(name); l.t.Failed() {
			l.t.Logf("%s:\n%s", name, text[max(0, len(text)-2000):])
		}
	})
	return p
}

func (l *lab) said(name string) string {
	text, err := os.ReadFile(filepath.Join(l.dir, name+".log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// train starts an agent for each instance of catalog:handwriting, on all hosts in turn.
func (l *lab) train(app string, settings ...string) {
	l.t.Helper()
	for i, name := range []string{"ps 0", "worker 0", "worker 1", "worker 2"} {
		component, index, _ := strings.Cut(name, " ")
		args := []string{
			"agent", "--app", "catalog:handwriting", "--instances", "ps=1,worker=3", "--app-id", app, "--component", component,
			"--index", index, "--registry", l.registry(), "--state-dir", filepath.Join(l.dir, fmt.Sprint("state", i%3)),
			"--work-dir", filepath.Join(l.dir, "work", component+index),
		}
		for _, s := range settings {
			args = append(args, "--set", s)
		}
		l.start(i%3, component+"-"+index, args...)
	}
}

// forward has this machine's loopback lead to an address of the first host, at the same port.
func (l *lab) forward(address string) {
	l.t.Helper()
	_, port, _ := net.SplitHostPort(address)
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			here, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer here.Close()
				var there net.Conn
				if l.net.Do(0, func() (err error) { there, err = net.Dial("tcp", address); return err }) != nil {
					return
				}
				defer there.Close()
				go func() { _, _ = io.Copy(there, here); _ = there.Close() }()
				_, _ = io.Copy(here, there)
			}()
		}
	}()
}

var linkLine = regexp.MustCompile(`(?m)^http://\S+$`)

// open starts muster ui on the first host, which has no state of the gang, and opens its link.
func (l *lab) open(b *browser) {
	l.t.Helper()
	port := ports.Claim(l.t, 1)[0]
	l.start(0, "ui", "ui", "--registry", l.registry(), "--listen", fmt.Sprintf("127.0.0.1:%d", port), "--state-dir", filepath.Join(l.dir, "none"))
	await(l.t, "the link", func() bool { return linkLine.MatchString(l.said("ui")) })
	l.forward(fmt.Sprintf("127.0.0.1:%d", port))
	b.do("open", chromedp.Navigate(linkLine.FindString(l.said("ui"))))
}

func await(t testing.TB, what string, see func() bool) {
	t.Helper()
	dog := time.NewTimer(watchdog)
	defer dog.Stop()
	for !see() {
		select {
		case <-dog.C:
			t.Fatalf("waited %s for %s", watchdog, what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// A person follows a gang on three hosts from one page: sees a failure and what it cost, reads a log, opens a shell,
// stops it.
func TestPage(t *testing.T) {
	l := newLab(t)
	b := newBrowser(t)
	l.train("digits", "site.global.train.steps=100000", "site.global.train.pace=0.05", "site.global.train.checkpoint.every=40")
	l.open(b)

	b.awaitText("td", "digits")
	b.awaitText("td", "running")
	b.do("filter", chromedp.SendKeys(`input[type="search"]`, "nothing has this name"))
	b.await("no rows", `document.querySelectorAll("tbody tr").length === 0`)
	b.do("filter", chromedp.SendKeys(`input[type="search"]`, strings.Repeat(kb.Backspace, 21)))
	b.awaitText("td", "digits")
	b.accessible("all apps")
	b.picture("apps")

	b.press("tbody", "digits")
	for _, name := range []string{"ps-0", "worker-0", "worker-1", "worker-2"} {
		b.awaitText("td", name)
	}
	for _, host := range []string{"10.77.0.1", "10.77.0.2", "10.77.0.3"} {
		b.awaitText("tbody", host)
	}
	b.await("a checkpoint of the gang", `[...document.querySelectorAll("tbody tr")].some((row) => Number(row.querySelector('[data-column="Step"]')?.textContent) >= 40)`)

	// its log, as it grows, and only the lines that are looked for
	b.press("tbody", "worker-0")
	b.awaitText(".log", "step")
	b.do("search", chromedp.SendKeys(`section[aria-label="log"] input[type="search"]`, "no such line"))
	b.await("no line", `document.querySelector(".log").textContent === ""`)
	b.do("search", chromedp.SendKeys(`section[aria-label="log"] input[type="search"]`, strings.Repeat(kb.Backspace, 12)))
	b.awaitText(".log", "step")

	// a process dies
	b.press(row("worker-1"), "Signal …")
	b.do("which", chromedp.SetValue("dialog select", "KILL"))
	b.accessible("a dialog")
	b.press("dialog", "Send")
	b.awaitText("dialog .said", "sent")
	b.press("dialog", "Close")
	b.await("its second attempt", rowIs("worker-1", "Attempt", "2"))
	b.await("what it has lost", `document.querySelectorAll(".timeline .span-lost").length > 0`)
	b.awaitText("dt", "productive")

	// what it uses
	b.await("curves of memory and cores", `document.querySelectorAll(".charts .uplot canvas").length >= 2`)
	b.do("one of them", chromedp.SetValue(`section[aria-label="use"] select`, "worker-2"),
		chromedp.Evaluate(`document.querySelector('section[aria-label="use"] select').dispatchEvent(new Event("change")); 0`, nil))
	b.awaitText(".charts .u-legend", "worker-2 limit")
	if *update { // a curve of some points
		b.await("samples", `fetch("/api/v1/apps/digits/samples").then((answer) => answer.json()).then((all) => all.instances.every((one) => one.at.length > 5))`)
	}

	// a shell in it
	b.press(row("worker-2"), "Shell")
	b.await("a prompt", `/# *$/.test(document.querySelector(".xterm-rows")?.innerText.trim() || "")`)
	b.do("type", chromedp.SendKeys(".xterm-helper-textarea", "echo I am $MUSTER_INSTANCE\r"))
	b.awaitText(".terminal", "I am worker-2")
	b.accessible("one app")
	b.picture("app")

	for _, scheme := range []string{"dark", "light"} {
		b.look(360, scheme)
		b.fits("one app, " + scheme)
		b.accessible("one app, 360 px, " + scheme)
		b.picture("app-360-" + scheme)
	}
	b.look(1280, "light")

	// its end
	b.press(".acts", "Stop …")
	b.press("dialog", "Stop")
	b.await("the answer", `document.querySelector("dialog .said").textContent === "done"`)
	b.press("dialog", "Close")
	b.awaitText("dd", "stopped")
	b.await("no more acts", nothingToActWith)
	for _, e := range *b.errors {
		t.Errorf("the page's code: %s", e)
	}
	if text := l.said("ui"); !strings.Contains(text, "act=/api/v1/apps/digits/stop") {
		t.Errorf("the server's log names no stop:\n%s", text)
	}
}

// row is the table's row of an instance, as a selector.
func row(instance string) string {
	return fmt.Sprintf(`tr:has([data-key="log %s"])`, instance)
}

// rowIs is true when a cell of an instance's row has a text.
func rowIs(instance, column, text string) string {
	return fmt.Sprintf("document.querySelector(%q)?.textContent === %q", row(instance)+` [data-column="`+column+`"]`, text)
}
