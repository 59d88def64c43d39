package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/muster-agent/muster/tests/child"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/need"
)

const root = "../.."

// script runs one of the project's scripts and returns what it prints; the test is skipped where it fails.
func script(t testing.TB, name string, args ...string) string {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.Command(filepath.Join(root, "scripts", name), args...)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		need.Skip(t, fmt.Sprintf("scripts/%s: %v: %s", name, err, said.String()))
	}
	return strings.TrimSpace(string(out))
}

// browser is one window of a Chromium.
type browser struct {
	t      testing.TB
	ctx    context.Context
	errors *[]string // that the page's code has thrown, and what the browser refused to load
}

// newBrowser starts Debian's Chromium, which ends with the test.
func newBrowser(t testing.TB) *browser {
	t.Helper()
	profile, err := folder.Make("profile-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // its helpers write there for a moment longer than it lives
		await(t, "the end of Chromium's helpers", func() bool { return os.RemoveAll(profile) == nil })
	})
	folder := script(t, "lab/debian", "chromium", "chromium", "fonts-dejavu-core")
	libraries := filepath.Join(folder, "usr/lib", triplet())
	fonts := filepath.Join(t.TempDir(), "fonts.conf")
	text := "<fontconfig><dir>" + folder + "/usr/share/fonts</dir><cachedir>" + t.TempDir() + "</cachedir></fontconfig>"
	if err := os.WriteFile(fonts, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(folder, "usr/lib/chromium/chromium"), "--headless=new", "--no-sandbox", // root has none
		"--remote-debugging-port=0", "--user-data-dir="+profile, "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1280,900",
		"--hide-scrollbars", "--ignore-certificate-errors", "about:blank")
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join([]string{libraries, libraries + "/nss", libraries + "/pulseaudio"}, ":"),
		"FONTCONFIG_FILE="+fonts, "HOME="+t.TempDir())
	chromium, err := child.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := chromium.End(syscall.SIGTERM, watchdog); err != nil {
			t.Error(err)
		}
	})
	var where []string // its port, and the path of its own target
	await(t, "Chromium", func() bool {
		text, err := os.ReadFile(filepath.Join(profile, "DevToolsActivePort"))
		where = strings.Fields(string(text))
		return err == nil && len(where) == 2
	})
	allocator, quit := chromedp.NewRemoteAllocator(context.Background(), "ws://127.0.0.1:"+where[0]+where[1], chromedp.NoModifyURL)
	ctx, leave := chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {})) // it names events that it does not know
	t.Cleanup(func() { leave(); quit() })
	b := &browser{t: t, ctx: ctx, errors: &[]string{}}
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *cdpruntime.EventExceptionThrown:
			*b.errors = append(*b.errors, e.ExceptionDetails.Error())
		case *cdplog.EventEntryAdded:
			if e.Entry.Level == cdplog.LevelError {
				*b.errors = append(*b.errors, e.Entry.Text+" "+e.Entry.URL)
			}
		}
	})
	if err := chromedp.Run(ctx, cdplog.Enable(), page.BringToFront()); err != nil {
		t.Fatal(err)
	}
	return b
}

func triplet() string {
	return map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH] + "-linux-gnu"
}

// do acts, each within the watchdog.
func (b *browser) do(what string, actions ...chromedp.Action) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, watchdog)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		b.keep()
		b.t.Fatalf("%s: %v; %q; the page shows:\n%s", what, err, *b.errors, b.text())
	}
}

// keep leaves a picture of what went wrong in MUSTER_KEEP.
func (b *browser) keep() {
	dir := os.Getenv("MUSTER_KEEP")
	if dir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, watchdog)
	defer cancel()
	var png []byte
	if err := errors.Join(chromedp.Run(ctx, chromedp.FullScreenshot(&png, 100)),
		os.WriteFile(filepath.Join(dir, b.t.Name()+".png"), png, 0o600)); err != nil {
		b.t.Log(err)
	}
}

// text is what the page shows.
func (b *browser) text() string {
	ctx, cancel := context.WithTimeout(b.ctx, watchdog)
	defer cancel()
	var text string
	if err := chromedp.Run(ctx, chromedp.Evaluate("document.body.innerText", &text)); err != nil {
		return err.Error()
	}
	return text
}

// await waits until a JavaScript expression is true. A page that is left meanwhile has no answer.
func (b *browser) await(what, expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, watchdog)
	defer cancel()
	for {
		var yes bool
		err := chromedp.Run(ctx, chromedp.Evaluate(expression, &yes, promised))
		if err == nil && yes {
			return
		}
		select {
		case <-ctx.Done():
			b.keep()
			b.t.Fatalf("waited %s for %s: %v; %q; the page shows:\n%s", watchdog, what, err, *b.errors, b.text())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// nothingToActWith is true when none of the buttons that a person sees acts on an app.
const nothingToActWith = `![...document.querySelectorAll("button")].some(
	(one) => one.checkVisibility() && /^(Stop|Save|Counts|Signal|Shell|Hold)/.test(one.textContent))`

// promised has an expression that is a promise waited for.
func promised(p *cdpruntime.EvaluateParams) *cdpruntime.EvaluateParams {
	return p.WithAwaitPromise(true)
}

// awaitText waits until an element shows a text.
func (b *browser) awaitText(selector, text string) {
	b.t.Helper()
	quoted, _ := json.Marshal(text)
	b.await(fmt.Sprintf("%q in %s", text, selector),
		fmt.Sprintf("[...document.querySelectorAll(%q)].some((one) => one.textContent.includes(%s))", selector, quoted))
}

// press clicks the button of a text, within an element.
func (b *browser) press(within, text string) {
	b.t.Helper()
	b.await("button "+text+" in "+within, fmt.Sprintf(`(() => {
		const place = document.querySelector(%q);
		const one = place && [...place.querySelectorAll("button, a")].find((each) => each.textContent === %q && !each.disabled && each.checkVisibility());
		if (one) one.click();
		return Boolean(one);
	})()`, within, text))
}

// picture takes doc/img/NAME.png anew, if that was asked for.
func (b *browser) picture(name string) {
	b.t.Helper()
	if !*update {
		return
	}
	var png []byte
	b.do("picture", chromedp.FullScreenshot(&png, 100))
	if err := os.WriteFile(filepath.Join(root, "doc/img", name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// look makes the window as wide as a device, in its colours.
func (b *browser) look(width int64, scheme string) {
	b.t.Helper()
	b.do("window", chromedp.EmulateViewport(width, 900),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
}

// accessible has axe-core look at the page as it is: nothing serious may be found.
func (b *browser) accessible(what string) {
	b.t.Helper()
	folder := script(b.t, "lab/axe")
	axe, err := os.ReadFile(filepath.Join(folder, "axe.min.js"))
	if err != nil {
		b.t.Fatal(err)
	}
	var found []struct {
		ID, Impact string
		Nodes      []struct{ HTML string }
	}
	b.do("axe-core", chromedp.Evaluate(string(axe)+";0", nil), chromedp.Evaluate(
		"axe.run().then((all) => all.violations.map(({id, impact, nodes}) => ({id, impact, nodes: nodes.map(({html}) => ({html}))})))",
		&found, promised))
	for _, one := range found {
		if one.Impact == "serious" || one.Impact == "critical" {
			b.t.Errorf("%s: axe-core: %s (%s): %s", what, one.ID, one.Impact, one.Nodes[0].HTML)
		}
	}
}

// fits tells that nothing is wider than the window.
func (b *browser) fits(what string) {
	b.t.Helper()
	var wide []string
	b.do("width", chromedp.Evaluate(`document.documentElement.scrollWidth <= innerWidth ? [] :
		[...document.querySelectorAll("body *")].filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest(".scroll")).map((one) => one.outerHTML.slice(0, 80))`, &wide))
	if len(wide) > 0 {
		b.t.Errorf("%s: wider than the window: %q", what, wide[:min(3, len(wide))])
	}
}
