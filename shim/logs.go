package shim

import (
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/launcher/known"
	"github.com/muster-agent/muster/shim/linequeue"
	"github.com/muster-agent/muster/shim/logtimes"
)

// linkLogs links an instance's logs into the launcher's log folder, as INSTANCE.stdout.log and so on, where the
// launcher collects no folders below it.
func (a *agent) linkLogs(in registry.Instance) {
	top := a.id.found.LogDir
	if !known.FlatLogs(a.id.found.Name) || filepath.Join(absolute(top), "muster") != a.logDir {
		return // the launcher collects them, or they are elsewhere
	}
	for _, name := range []string{"stdout.log", "stderr.log", "agent.log"} {
		err := os.Symlink(filepath.Join("muster", in.String(), name), filepath.Join(top, in.String()+"."+name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			a.log.Warn("the launcher will not collect the logs", "launcher", a.alloc.Launcher, "err", err)
			return
		}
	}
}

// lateFile is the agent's log: on stderr, and in a file once the instance is known. The file gets the earlier lines,
// too. Neither is waited for: a pipe that nobody reads, or a disk that hangs, must hold up neither the machine's loop
// nor the fence, which log.
type lateFile struct {
	terminal, file *linequeue.Queue

	once   sync.Once
	opened chan struct{} // closed when to is set; before that no line is taken from the file's queue
	to     io.Writer
}

// logPatience is how long the last lines of each may take to be written.
const logPatience = time.Second

func newLateFile(terminal io.Writer, lost func(n int) []byte) *lateFile {
	l := &lateFile{terminal: linequeue.New(writeTo(terminal), lost), opened: make(chan struct{})}
	l.file = linequeue.New(func(line []byte) {
		<-l.opened
		writeTo(l.to)(line)
	}, lost)
	return l
}

// writeTo writes lines. A full disk or a closed pipe must not end the agent: the other place has the line.
func writeTo(w io.Writer) func([]byte) { return func(line []byte) { _, _ = w.Write(line) } }

func (l *lateFile) Write(b []byte) (int, error) {
	l.terminal.Add(b)
	l.file.Add(b)
	return len(b), nil
}

// say writes a line to the terminal alone.
func (l *lateFile) say(line string) { l.terminal.Add([]byte(line + "\n")) }

// open has the lines written to a file, of which an agent that began at since writes the end.
func (l *lateFile) open(path string, since time.Time, log *slog.Logger) {
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	var f *os.File
	if err == nil {
		if err := logtimes.Begin(path, since); err != nil {
			log.Warn("what an earlier agent logged is not told from this one's", "err", err)
		}
		f, err = files.AppendPlain(path)
	}
	if err != nil {
		log.Warn("agent's log not opened", "err", err)
		return
	}
	l.writeInto(f)
}

// writeInto lets the file's queue run.
func (l *lateFile) writeInto(to io.Writer) {
	l.once.Do(func() {
		l.to = to
		close(l.opened)
	})
}

// close has the last lines written.
func (l *lateFile) close() {
	l.writeInto(io.Discard) // if there is no file
	l.file.Close(logPatience)
	l.terminal.Close(logPatience)
}
