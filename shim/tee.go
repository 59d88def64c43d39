package shim

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/launcher/known"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/tail"
)

// teePatience is how long a launcher may take to read the last output of a process that has ended.
const teePatience = 2 * time.Second

// tees tells whether the agent copies the process's output: what was asked for, else what the launcher keeps.
func (a *agent) tees() bool {
	if asked := a.output.Tee; asked != nil {
		return *asked
	}
	return known.KeepsOutput(a.id.found.Name)
}

// tee copies whole lines of the process's stdout.log and stderr.log to the agent's own stdout and stderr, from now on.
// The process writes to its files and never waits: a launcher that does not read holds up the copy alone. The function
// that it returns copies the rest, for patience at most, and ends it.
func tee(ctx context.Context, logDir string, to Output, log *slog.Logger, patience time.Duration) (end func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the last output is read after a cancelled run
	var wg sync.WaitGroup
	for name, to := range map[string]io.Writer{"stdout.log": to.Stdout, "stderr.log": to.Stderr} {
		path := filepath.Join(logDir, name)
		from := files.PlainSize(path) // what an earlier agent of this container copied is not repeated
		wg.Go(func() {
			lines := lineCopy{to: to}
			lines.Show = lines.write
			err := status.Follow(ctx, path, from, true, &lines)
			lines.Flush()
			if err = cmp.Or(err, lines.err); err != nil {
				log.Warn("output of the process no longer copied", "file", path, "err", err)
			}
		})
	}
	return func() {
		cancel()
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(patience):
			log.Warn("end of the process's output not copied: the launcher does not read it", "logs", logDir)
		}
	}
}

// lineCopy writes whole lines: they share their file with the agent's log.
type lineCopy struct {
	tail.Lines
	to  io.Writer
	err error // of the first line that could not be written
}

func (c *lineCopy) write(line string) {
	if c.err == nil {
		_, c.err = io.WriteString(c.to, line+"\n")
	}
}

// Write ends a copy whose reader has gone.
func (c *lineCopy) Write(b []byte) (int, error) {
	if _, err := c.Lines.Write(b); err != nil {
		return 0, err
	}
	return len(b), c.err
}
