package data_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/store/storetest"
)

// counted serves files and counts their bytes; it holds on in the middle of one, until it is let go.
type counted struct {
	files map[string][]byte
	hold  int64 // bytes of the large file, after which it holds on
	held  chan struct{}
	once  sync.Once
	let   chan struct{}

	mu   sync.Mutex
	sent map[string]int64 // bytes
}

type countedReader struct {
	io.ReadSeeker
	of   *counted
	name string
	at   int64
}

func (r *countedReader) Seek(offset int64, whence int) (int64, error) {
	at, err := r.ReadSeeker.Seek(offset, whence)
	r.at = at
	return at, err
}

func (r *countedReader) Read(p []byte) (int, error) {
	if r.name == "/large" && r.at >= r.of.hold {
		r.of.once.Do(func() { close(r.of.held) })
		<-r.of.let
	}
	n, err := r.ReadSeeker.Read(p)
	r.at += int64(n)
	r.of.mu.Lock()
	r.of.sent[r.name] += int64(n)
	r.of.mu.Unlock()
	return n, err
}

func (c *counted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, ok := c.files[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("ETag", `"one"`)
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", time.Time{}, &countedReader{ReadSeeker: bytes.NewReader(content), of: c, name: r.URL.Path})
}

// An agent is killed while it brings a file. The one in its place goes on where the file was, and takes what is whole as it is.
func TestKilledInMidDownload(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	large, small := storetest.Noise(48*mib, 1), storetest.Noise(3*mib, 2)
	c := &counted{
		files: map[string][]byte{"/large": large, "/small": small}, hold: 40 * mib,
		held: make(chan struct{}), let: make(chan struct{}), sent: map[string]int64{},
	}
	server := httptest.NewServer(c)
	let := sync.OnceFunc(func() { close(c.let) })
	defer server.Close()
	defer let()
	j := newJob(t, 1, settings{
		"muster.command":         `cat data/large data/small | sha256sum | cut -d ' ' -f 1 > model/sum`,
		"muster.input.data":      server.URL + "/small," + server.URL + "/large",
		"muster.inputs.parallel": "1",
		"muster.output.model":    "out",
	})
	cmd := j.command(j.runArgs("--engine", "process")...)
	end := j.begin(cmd)
	<-c.held
	await(t, "what was sent, on disk", func() bool { return strings.Count(read(filepath.Join(j.work, ".inputs-worker-0")), "data/large") == 2 })
	j.must(cmd.Process.Signal(syscall.SIGSTOP)) // it would launch another at once
	agent := j.onlyChild(cmd.Process.Pid)       // it has no record of its own before it starts something
	pid, err := strconv.Atoi(agent)
	j.must(err)
	j.must(syscall.Kill(pid, syscall.SIGKILL))
	await(t, "the agent's death", func() bool { return strings.Contains(read("/proc/"+agent+"/stat"), ") Z ") })
	let()
	j.must(cmd.Process.Signal(syscall.SIGCONT))
	end().succeeds(t)
	want := sha256.Sum256(append(large, small...))
	j.same(j.files(filepath.Join(j.store, "out")), map[string]string{"_SUCCESS": "", "worker-0/sum": hex.EncodeToString(want[:]) + "\n"})
	c.mu.Lock()
	defer c.mu.Unlock()
	if twice := c.sent["/large"] - int64(len(large)); twice > 17*mib {
		t.Errorf("%d bytes of the large file were sent again, want 16 MiB and what was on its way", twice)
	}
	if got := c.sent["/small"]; got != int64(len(small)) {
		t.Errorf("%d bytes of the small file were sent, want it once", got)
	}
}

// onlyChild is the pid of a process's child, whichever of its threads has started it.
func (j *job) onlyChild(pid int) string {
	j.t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	j.must(err)
	var children []string
	for _, list := range lists {
		children = append(children, strings.Fields(read(list))...)
	}
	if len(children) != 1 {
		j.t.Fatalf("children of %d: %q, want one", pid, children)
	}
	return children[0]
}
