package shim

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/launcher/known"
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
// too.
type lateFile struct {
	mu   sync.Mutex
	also io.Writer
	file *os.File
	held bytes.Buffer
}

func (l *lateFile) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_, _ = l.file.Write(b) // a full disk must not end the agent; stderr has the line
	} else {
		l.held.Write(b)
	}
	return l.also.Write(b)
}

func (l *lateFile) open(path string, log *slog.Logger) {
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	var f *os.File
	if err == nil {
		f, err = files.AppendPlain(path)
	}
	if err != nil {
		log.Warn("agent's log not opened", "err", err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.held.WriteTo(f) // as above
	l.file = f
}
