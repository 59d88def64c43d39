package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/shim/status"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// logOf writes a log whose lines were written at these seconds behind noon; none: nobody marked them.
func logOf(t *testing.T, path, text string, at ...int) {
	t.Helper()
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	marks, size := "", 0
	for i, line := range strings.SplitAfter(text, "\n") {
		if size += len(line); i < len(at) {
			marks += fmt.Sprintln(info.Sys().(*syscall.Stat_t).Ino, size, noon.Add(time.Duration(at[i])*time.Second).UnixMilli())
		}
	}
	if len(at) == 0 {
		return
	}
	if err := os.WriteFile(path+".times", []byte(marks), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLines(t *testing.T) {
	dir := t.TempDir()
	logOf(t, filepath.Join(dir, "worker-0/stdout.log"), "a1\na3\na5\n", 1, 3, 5)
	logOf(t, filepath.Join(dir, "worker-0/stderr.log"), "e2\ne4\n", 2, 4)
	logOf(t, filepath.Join(dir, "worker-1/stdout.log"), "\x1b[2Jb0\nb3\r\n", 0, 3)
	logOf(t, filepath.Join(dir, "worker-1/stderr.log"), "old\n")
	logOf(t, filepath.Join(dir, "worker-0/agent.log"),
		"time=2026-01-02T12:00:01.000Z level=INFO msg=x\ntime=2026-01-02T12:00:04.000Z level=INFO msg=y\n")

	both := []string{"stdout", "stderr"}
	for name, c := range map[string]struct {
		change   func(*Reader)
		streams  []string
		instance string // empty: all
		want     string
		warn     string
	}{
		"one, in the order of time": {nil, both, "worker-0", "a1\ne2\na3\ne4\na5\n", ""},
		"all":                       {nil, both, "", `w1! old w1| \u001b[2Jb0 w0| a1 w0! e2 w0| a3 w1| b3 w0! e4 w0| a5 `, ""},
		"since": {
			func(l *Reader) { l.Since = noon.Add(3 * time.Second) }, both, "", "w1! old w0| a3 w1| b3 w0! e4 w0| a5 ",
			"d1/worker-1: stderr.log has lines whose time is not known: --since shows them all\n",
		},
		"grep": {func(l *Reader) { l.Grep = regexp.MustCompile("^[ab][13]$") }, both, "", "w0| a1 w0| a3 w1| b3 ", ""},
		"the last of each, of which some match": {
			func(l *Reader) { l.Tail, l.Grep = 1, regexp.MustCompile("[ae]") }, both, "", "w0! e4 w0| a5 ", "",
		},
		"an agent's log": {
			func(l *Reader) { l.Since = noon.Add(2 * time.Second) },
			[]string{"agent"},
			"worker-0",
			"time=2026-01-02T12:00:04.000Z level=INFO msg=y\n", "",
		},
		"objects": {
			func(l *Reader) { l.JSON = l.Streams[0].Out; l.Grep = regexp.MustCompile("b3|old") }, both, "",
			`{"app":"d1","instance":"worker-1","stream":"stderr","at":null,"line":"old"} ` +
				`{"app":"d1","instance":"worker-1","stream":"stdout","at":"2026-01-02T12:00:03Z","line":"b3"} `, "",
		},
		"no such log": {nil, []string{"none"}, "worker-0", "", "none.log is not there yet: nothing was written\n"},
	} {
		var out, warn bytes.Buffer
		l := Reader{
			Lookup: apps.Lookup{Warn: &warn}, Tail: -1,
			Facts: apps.Facts{ID: "d1", Local: &status.AppFile{LogDir: dir}, States: map[string]status.State{
				"worker-0": {LogDir: filepath.Join(dir, "worker-0")}, "worker-1": {LogDir: filepath.Join(dir, "worker-1")},
			}},
		}
		for _, stream := range c.streams {
			mark := "|"
			if stream == "stderr" {
				mark = "!"
			}
			l.Streams = append(l.Streams, Stream{File: stream + ".log", Out: &out, Mark: mark})
		}
		if c.change != nil {
			c.change(&l)
		}
		show := func() error { return l.One(t.Context(), c.instance) }
		if c.instance == "" {
			show = func() error { return l.All(t.Context()) }
		}
		if err := show(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got := out.String()
		if c.instance == "" {
			got = strings.NewReplacer("worker-", "w", "     ", "", "\n", " ").Replace(got)
		}
		if name != "objects" {
			got = strings.NewReplacer("w0 ", "w0", "w1 ", "w1").Replace(got)
		} else {
			got = strings.ReplaceAll(got, `"w1"`, `"worker-1"`)
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		if !strings.HasSuffix(warn.String(), c.warn) || c.warn == "" && warn.Len() > 0 {
			t.Errorf("%s: warned %q, want %q", name, warn.String(), c.warn)
		}
	}
}

// agentOf has lines of so many bytes without end, and counts those that were taken.
type agentOf struct {
	apps.Agent
	size  int
	taken *atomic.Int64
}

func (a agentOf) Lines(ctx context.Context, _ string, _ status.LogQuery, show func(status.LogLine) error) error {
	text := bytes.Repeat([]byte("x"), a.size)
	for range 1 << 20 {
		a.taken.Add(int64(a.size))
		if err := show(status.LogLine{Text: text}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// A printer that is slow has no more of the logs read than some lines, however long these are.
func TestMergeReadsNotFarAhead(t *testing.T) {
	enough := errors.New("enough")
	for _, c := range []struct {
		names   []string
		streams []string
		size    int
		most    int64 // bytes
	}{
		{[]string{"worker-0"}, []string{"stdout"}, 1 << 20, 1 << 20},
		{[]string{"worker-0"}, []string{"stdout", "stderr"}, 1 << 20, 6 << 20},
		{[]string{"worker-0", "worker-1"}, []string{"stdout", "stderr"}, 1 << 20, 12 << 20},
		{[]string{"worker-0", "worker-1"}, []string{"stdout"}, 100, 6 * ahead},
	} {
		var taken atomic.Int64
		l := Reader{Lookup: apps.Lookup{Warn: io.Discard}, Tail: -1, Elsewhere: map[string]apps.Agent{}}
		for _, name := range c.names {
			l.Elsewhere[name] = agentOf{nil, c.size, &taken}
		}
		for _, name := range c.streams {
			l.Streams = append(l.Streams, Stream{File: name + ".log"})
		}
		shown, most := int64(0), int64(0)
		_, err := l.merge(t.Context(), c.names, func(e entry) error {
			for range 1000 { // the readers do what they can
				runtime.Gosched()
			}
			most = max(most, taken.Load()-shown)
			if shown += int64(len(e.Text)); shown > 3*c.most {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) || most > c.most {
			t.Errorf("%v %v: %d bytes ahead, want at most %d; %v", c.names, c.streams, most, c.most, err)
		}
	}
}
