package cache

import (
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/term"

	"github.com/muster-agent/muster/shim/store"
)

// How often progress is shown: on a terminal in one updated line, elsewhere a line each.
const (
	onTerminal = 200 * time.Millisecond
	inLog      = 10 * time.Second
)

// display shows the progress of the files of one call. Its methods are for any goroutine; nil shows nothing.
type display struct {
	screen   sync.Mutex // of to
	to       io.Writer
	terminal bool
	name     string // of the only file, else their number

	mu      sync.Mutex
	tallies []*tally
	begun   time.Time
	ended   chan struct{}
	done    sync.WaitGroup
}

// newDisplay shows nothing until something is loaded.
func newDisplay(to io.Writer, requests []Request) *display {
	if to == nil || len(requests) == 0 {
		return nil
	}
	d := &display{to: to, name: nameOf(requests[0].URL), ended: make(chan struct{})}
	if len(requests) > 1 {
		d.name = fmt.Sprintf("%d files", len(requests))
	}
	if w, ok := to.(interface{ Raw() io.Writer }); ok {
		d.to = w.Raw()
	}
	if f, ok := d.to.(*os.File); ok {
		d.terminal = term.IsTerminal(int(f.Fd()))
	}
	return d
}

// nameOf is the last element of a URL's path, short enough for a line.
func nameOf(url string) string {
	bare, _, _ := strings.Cut(store.Printable(url), "?")
	name := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) { // it is shown on a terminal
			return '?'
		}
		return r
	}, path.Base(bare))
	if len(name) > 40 {
		name = name[:37] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, name)
}

// tally counts the bytes of one file.
type tally struct {
	on        *display
	mu        sync.Mutex
	have, all int64 // bytes so far, and of the complete file; -1: not known
	came      int64 // bytes loaded by this call
}

// add begins a file.
func (d *display) add() *tally {
	t := &tally{on: d, all: -1}
	if d == nil {
		return t
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tallies = append(d.tallies, t)
	if d.begun.IsZero() {
		d.begun = time.Now()
		d.done.Go(d.run)
	}
	return t
}

func (d *display) run() {
	every := inLog
	if d.terminal {
		every = onTerminal
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-d.ended:
			return
		case <-ticker.C:
			d.show(d.line(), false)
		}
	}
}

// finish shows the last state and ends the display.
func (d *display) finish() {
	if d == nil {
		return
	}
	close(d.ended)
	d.done.Wait()
	d.mu.Lock()
	begun := !d.begun.IsZero()
	d.mu.Unlock()
	if begun {
		d.show(d.line(), true)
	}
}

// show writes a line, which the next one replaces on a terminal unless it is the last. An error of the display stops
// nothing.
func (d *display) show(line string, stays bool) {
	d.screen.Lock()
	defer d.screen.Unlock()
	switch {
	case !d.terminal:
		fmt.Fprintln(d.to, line)
	case stays:
		fmt.Fprintln(d.to, "\r"+line+"\x1b[K")
	default:
		fmt.Fprint(d.to, "\r"+line+"\x1b[K")
	}
}

// line is like `fetch app.zip: 12.3 of 100.0 MiB, 12 %, 4.5 MiB/s`.
func (d *display) line() string {
	d.mu.Lock()
	tallies, took := d.tallies, time.Since(d.begun)
	d.mu.Unlock()
	var have, all, came int64
	for _, t := range tallies {
		t.mu.Lock()
		have, came = have+t.have, came+t.came
		if t.all < 0 || all < 0 {
			all = -1
		} else {
			all += t.all
		}
		t.mu.Unlock()
	}
	return "fetch " + d.name + ": " + amount(have, all) + rate(came, took)
}

const mib = 1 << 20

func amount(have, all int64) string {
	if all <= 0 {
		return fmt.Sprintf("%.1f MiB", float64(have)/mib)
	}
	return fmt.Sprintf(
		"%.1f of %.1f MiB, %d %%", float64(have)/mib, float64(all)/mib, int64(100*float64(have)/float64(all)),
	)
}

func rate(came int64, took time.Duration) string {
	if took < 100*time.Millisecond {
		return ""
	}
	return fmt.Sprintf(", %.1f MiB/s", float64(came)/mib/took.Seconds())
}

func (t *tally) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.have += int64(len(p))
	t.came += int64(len(p))
	return len(p), nil
}

// had counts the bytes of an earlier try.
func (t *tally) had(n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.have = n
}

func (t *tally) restart() { t.had(0) }

func (t *tally) total(n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = n
}

// broke shows why a try ended and when the next begins.
func (t *tally) broke(err error, pause time.Duration) {
	if t.on == nil {
		return
	}
	t.on.show(fmt.Sprintf("fetch %s: %v: again in %s", t.on.name, err, pause.Round(100*time.Millisecond)), true)
}
