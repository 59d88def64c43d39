// Package abuse has strangers and programs take all that they can of a real muster ui and of real agents, and measures
// what these hold meanwhile.
//
//	go test ./tests/abuse -v    prints the measured figures
package abuse

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/tests/binary"
	"github.com/muster-agent/muster/tests/child"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/need"
)

// watchdog ends a wait that has gone wrong; it is part of no promise.
const watchdog = 60 * time.Second

// muster is the binary under test. Set before the first test, never after.
var muster string

func TestMain(m *testing.M) {
	os.Exit(binary.Main(func(built string) int {
		muster = built
		return m.Run()
	}))
}

// start runs muster; its output goes to the file that is returned, too.
func start(t *testing.T, dir, name string, args ...string) (pid int, log string) {
	t.Helper()
	cmd := exec.Command(muster, args...)
	cmd.Env = append(os.Environ(), "HOME="+dir)
	log = filepath.Join(dir, name+".log")
	p, err := child.StartLogged(cmd, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.End(syscall.SIGTERM, watchdog); err != nil {
			t.Error(err)
		}
		if text := said(log); t.Failed() {
			t.Logf("%s:\n%s", name, text[max(0, len(text)-2000):])
		}
	})
	return cmd.Process.Pid, log
}

func said(log string) string {
	text, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// await waits for what must come to be.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(watchdog); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not after %s", what, watchdog)
		}
	}
}

// held is what a process holds.
type held struct{ mb, peak, files, threads int }

func (h held) String() string {
	return fmt.Sprintf("%d MiB (at most %d), %d descriptors, %d threads", h.mb, h.peak, h.files, h.threads)
}

func heldBy(t *testing.T, pid int) (h held) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		words := strings.Fields(string(line))
		if len(words) < 2 {
			continue
		}
		n, _ := strconv.Atoi(words[1])
		switch words[0] {
		case "VmRSS:":
			h.mb = n >> 10
		case "VmHWM:":
			h.peak = n >> 10
		case "Threads:":
			h.threads = n
		}
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	h.files = len(files)
	return h
}

// page starts muster ui, and returns its address and a browser that has opened its link.
func page(t *testing.T, dir string) (base string, pid int, browser *http.Client) {
	t.Helper()
	pid, log := start(t, dir, "ui", "ui", "--listen", "127.0.0.1:0", "--state-dir", filepath.Join(dir, "state"))
	link := regexp.MustCompile(`http://127\.0\.0\.1:\d+/login\?key=\w+`)
	await(t, "the link", func() bool { return link.MatchString(said(log)) })
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser = &http.Client{Jar: jar, Timeout: watchdog}
	url := link.FindString(said(log))
	base, _, _ = strings.Cut(url, "/login")
	if code := ask(t, browser, url); code != http.StatusOK {
		t.Fatalf("the link: %d", code)
	}
	return base, pid, browser
}

func ask(t *testing.T, c *http.Client, url string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode
}

// Strangers who hold 10,000 connections, idle, in the middle of a head or of a body, keep no user from the page, and
// leave nothing behind.
func TestTenThousandConnections(t *testing.T) {
	const crowd, room = 10_000, 12_000
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < room {
		need.Skip(t, fmt.Sprintf("needs %d open files (ulimit -Hn), has %d", room, limit.Cur))
	}
	dir := folder.Temp(t, "abuse-")
	base, pid, browser := page(t, dir)
	host := strings.TrimPrefix(base, "http://")
	before := heldBy(t, pid)
	heads := []string{
		"", // idle
		"GET /api/v1/apps HTTP/1.1\r\nHost: " + host + "\r\nX-Slow: ",
		"POST /login HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: 100\r\n\r\nx",
		"GET /api/v1/apps HTTP/1.1\r\nHost: " + host + "\r\n\r\n", // refused, and kept
	}
	begun, slowest, most := time.Now(), time.Duration(0), held{}
	conns := make([]net.Conn, 0, crowd)
	for i := range crowd {
		conn, err := net.DialTimeout("tcp", host, watchdog)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		conns = append(conns, conn)
		_, _ = io.WriteString(conn, heads[i%len(heads)]) // the server may have closed it
		if i%500 != 499 {
			continue
		}
		browser.CloseIdleConnections() // a new one has to come through
		asked := time.Now()
		if code := ask(t, browser, base+"/api/v1/apps"); code != http.StatusOK {
			t.Errorf("beside %d connections: %d", i+1, code)
		}
		slowest = max(slowest, time.Since(asked))
		if now := heldBy(t, pid); now.files > most.files {
			most = now
		}
	}
	took := time.Since(begun)
	for _, conn := range conns {
		_ = conn.Close() // the server may have
	}
	await(t, "the server to close its side", func() bool { return heldBy(t, pid).files <= before.files+8 })
	after := heldBy(t, pid)
	t.Logf("%d connections in %s; a user is answered within %s\nbefore: %s\nmeanwhile: %s\nafter: %s",
		crowd, took.Round(time.Millisecond), slowest.Round(time.Millisecond), before, most, after)
	if most := most.files - before.files; most > 1100 { // a quarter of 4,096 are one address's
		t.Errorf("%d connections of one stranger are open", most)
	}
	if after.peak-before.mb > 128 {
		t.Errorf("%d MiB more for strangers", after.peak-before.mb)
	}
	if slowest > 10*time.Second {
		t.Errorf("a user was answered after %s", slowest)
	}
	if err := syscall.Kill(pid, syscall.SIGQUIT); err != nil { // it tells its goroutines, and ends
		t.Fatal(err)
	}
	log := filepath.Join(dir, "ui.log")
	await(t, "the goroutines", func() bool { return strings.Contains(said(log), "goroutine ") && !alive(pid) })
	n := 0
	for lines := bufio.NewScanner(strings.NewReader(said(log))); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "goroutine ") {
			n++
		}
	}
	t.Logf("%d goroutines are left", n)
	if n > 40 {
		t.Errorf("%d goroutines are left", n)
	}
}

func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(text), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}
