package abuse

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/leash"
	"github.com/muster-agent/muster/tests/need"
)

// peaks are the most that processes of muster below one have held, by the name of what they are.
type peaks struct {
	mu  sync.Mutex
	all map[string]int // MiB
}

// watch looks at the processes below root until stop is closed.
func (p *peaks) watch(root int, stop chan struct{}) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		parents := map[int]int{}
		words := map[int]string{}
		folders, _ := filepath.Glob("/proc/[0-9]*")
		for _, folder := range folders {
			pid, _ := strconv.Atoi(filepath.Base(folder))
			text, err := os.ReadFile(folder + "/stat")
			if err != nil {
				continue
			}
			_, rest, _ := bytes.Cut(text, []byte(") "))
			fields := strings.Fields(string(rest))
			if len(fields) < 2 {
				continue
			}
			parents[pid], _ = strconv.Atoi(fields[1])
			line, _ := os.ReadFile(folder + "/cmdline")
			words[pid] = strings.ReplaceAll(string(line), "\x00", " ")
		}
		for pid := range parents {
			below := false
			for up := pid; up > 1; up = parents[up] {
				below = below || up == root
			}
			name := ""
			switch line := words[pid]; {
			case !below:
			case strings.HasPrefix(line, muster+" run"):
				name = "run"
			case strings.HasPrefix(line, muster+" agent"):
				name = "agent"
			}
			if name == "" {
				continue
			}
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			_, rest, found := strings.Cut(string(text), "VmHWM:")
			fields := strings.Fields(rest)
			if err != nil || !found || len(fields) == 0 {
				continue
			}
			kb, _ := strconv.Atoi(fields[0])
			p.mu.Lock()
			p.all[name] = max(p.all[name], kb>>10)
			p.mu.Unlock()
		}
		select {
		case <-stop:
			return
		case <-tick.C:
		}
	}
}

// counter counts what is written to it, by one goroutine.
type counter struct {
	n    atomic.Int64
	gaps atomic.Int64 // lines that say that others may be missing
	last []byte       // of what was written, to see such a line over two writes
}

const gap = "muster: lines may be missing"

func (c *counter) Write(b []byte) (int, error) {
	c.n.Add(int64(len(b)))
	seam := append(c.last, b[:min(len(b), len(gap)-1)]...)
	c.gaps.Add(int64(bytes.Count(seam, []byte(gap)) + bytes.Count(b, []byte(gap))))
	if len(b) >= len(gap)-1 {
		seam = b
	}
	c.last = bytes.Clone(seam[max(0, len(seam)-len(gap)+1):])
	return len(b), nil
}

// A process writes 1 GiB as fast as it can: its log's files are bounded, each byte reaches those who follow it, or they
// are told, and neither its agent nor the page grows, beside readers who take nothing, too.
func TestGigabyteOfLog(t *testing.T) {
	need.Root(t)
	const size, line = 1 << 30, 128
	dir := folder.Temp(t, "abuse-")
	state := filepath.Join(dir, "state")
	script := fmt.Sprintf(`trap 'go=1' USR1; echo ready; while [ -z "$go" ]; do sleep 0.05; done; `+
		`date +%%s.%%N >&2; yes %s | head -c %d; date +%%s.%%N >&2`, strings.Repeat("x", line-1), size)
	root, runLog := start(t, dir, "run", "run", "--output", "events", "--app-id", "big", "--work-dir", filepath.Join(dir, "work"),
		"--state-dir", state, "-n", "1", "--", "sh", "-c", script)
	stdout := filepath.Join(dir, "work", "log", "worker-0", "stdout.log")
	await(t, "the process", func() bool { return said(stdout) == "ready\n" })
	base, ui, browser := page(t, dir)
	uiBefore := heldBy(t, ui)
	held := peaks{all: map[string]int{}}
	stop, watched := make(chan struct{}), make(chan struct{})
	go func() { defer close(watched); held.watch(root, stop) }()

	// Readers: two of the page, of whom one takes nothing, and one of a command line.
	open := func() *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/api/v1/apps/big/logs/worker-0/stdout?follow=true", nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	forever := &http.Client{Jar: browser.Jar}
	answer, err := forever.Do(open())
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(answer, err)
	}
	defer answer.Body.Close()
	var ofPage, ofLine counter
	var ends sync.WaitGroup
	ends.Go(func() { _, _ = io.Copy(&ofPage, answer.Body) }) // what is missing is counted
	for range 8 {
		r := open()
		for _, cookie := range browser.Jar.Cookies(r.URL) {
			r.AddCookie(cookie)
		}
		conn, err := net.Dial("tcp", r.URL.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := r.Write(conn); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReaderSize(conn, 16).Peek(12); err != nil { // it has begun to answer
			t.Fatal(err)
		}
	}
	follow := exec.CommandContext(t.Context(), muster, "logs", "--state-dir", state, "-f", "--stdout", "big/worker-0")
	follow.Stdout = &ofLine
	ends.Go(func() {
		if err := leash.Run(follow, 5*time.Minute); err != nil {
			t.Errorf("logs -f: %v", err)
		}
	})
	await(t, "the readers", func() bool { return ofPage.n.Load() > 0 && ofLine.n.Load() > 0 })
	if out, err := exec.Command(muster, "signal", "--state-dir", state, "big/worker-0", "USR1").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ended := time.Now().Add(4 * time.Minute)
	for !strings.Contains(said(runLog), "succeeded") {
		if time.Now().After(ended) {
			t.Fatalf("the run does not end:\n%s", said(runLog))
		}
		time.Sleep(50 * time.Millisecond)
	}
	ends.Wait()
	close(stop)
	<-watched
	files, err := filepath.Glob(stdout + "*")
	if err != nil {
		t.Fatal(err)
	}
	var kept, most int64
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil || strings.HasSuffix(file, ".times") {
			continue
		}
		kept, most = kept+info.Size(), max(most, info.Size())
	}
	uiAfter := heldBy(t, ui)
	var begun, done float64
	_, _ = fmt.Sscan(said(filepath.Join(filepath.Dir(stdout), "stderr.log")), &begun, &done)
	t.Logf("%d MiB of log in %.1f s; kept %d MiB, a file at most %d MiB\nheld at most, MiB: %v\nui before: %s\nui after: %s\nread by the page's follower %d bytes, by logs -f %d",
		size>>20, done-begun, kept>>20, most>>20, held.all, uiBefore, uiAfter, ofPage.n.Load(), ofLine.n.Load())
	const whole = size + int64(len("ready\n"))
	if most > 257<<20 || kept > 4*most || kept < 3<<28 { // four files of 256 MiB
		t.Errorf("%d bytes are kept of %d, in files of at most %d", kept, whole, most)
	}
	for who, c := range map[string]*counter{"the page's follower": &ofPage, "logs -f": &ofLine} {
		if n := c.n.Load(); n != whole && c.gaps.Load() == 0 { // a busy machine rotates faster than it reads
			t.Errorf("%s has read %d bytes of %d, and was not told", who, n, whole)
		}
	}
	const mostHeld = 128 // MiB
	for _, name := range []string{"agent", "run"} {
		if n := held.all[name]; n == 0 || n > mostHeld {
			t.Errorf("%s held %d MiB, want at most %d", name, n, mostHeld)
		}
	}
	if grown := uiAfter.peak - uiBefore.mb; grown > 64 {
		t.Errorf("the page grew by %d MiB", grown)
	}
}
