package journal

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/linequeue"
	"github.com/muster-agent/muster/shim/machine"
)

func newJournal(t *testing.T) (j *Journal, file string) {
	t.Helper()
	s := machine.New()
	s.Instance = registry.Instance{Component: "worker", Index: 1}
	dir := t.TempDir()
	return New(slog.New(slog.DiscardHandler), dir, func() machine.State { return s }, strings.Clone), filepath.Join(dir, "worker-1", "events.jsonl")
}

// TestEventsAreWritten: what was told before Close is in the file.
func TestEventsAreWritten(t *testing.T) {
	j, file := newJournal(t)
	j.Warn("disk", "it is nearly full")
	j.Mended("disk", "it is not any more")
	j.Close()
	text, err := os.ReadFile(file)
	if err != nil || strings.Count(string(text), "\n") != 2 || !strings.Contains(string(text), `"event":"mended"`) {
		t.Errorf("got %q, %v, want a warning and its end", text, err)
	}
}

// TestLinesAreRemembered: for the account of time, while there are few enough, and the newest checkpoint however close.
func TestLinesAreRemembered(t *testing.T) {
	j, _ := newJournal(t)
	defer j.Close()
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	j.Trace(machine.Transition{From: machine.Waiting, To: machine.Running, State: j.state()})
	j.Checkpoint(1, at)
	j.Checkpoint(2, at.Add(time.Second)) // too close for a line
	lines, all := j.Lines()
	if !all || len(lines) != 2 || lines[0].To != machine.Running || lines[1].Event != EventCheckpoint || lines[1].Instance != "worker-1" {
		t.Errorf("got %+v, %v", lines, all)
	}
	if got := j.Saved(); !got.Equal(at.Add(time.Second)) {
		t.Errorf("saved %v", got)
	}
	for range mostLines {
		j.Event("x", "", at)
	}
	if lines, all := j.Lines(); all || len(lines) != mostLines {
		t.Errorf("%d lines, %v", len(lines), all)
	}
}

// TestStarted: the last start of the process counts, and what comes after it changes nothing.
func TestStarted(t *testing.T) {
	j, _ := newJournal(t)
	defer j.Close()
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	if got := j.Started(); got != nil {
		t.Errorf("before any: %v", got)
	}
	for i, tt := range []struct {
		from, to machine.Phase
		want     int // seconds; -1: none
	}{
		{machine.Staging, machine.Waiting, -1},
		{machine.Waiting, machine.Running, 1},
		{machine.Running, machine.Running, 1},
		{machine.Running, machine.Backoff, 1},
		{machine.Backoff, machine.Running, 4},
		{machine.Running, machine.Holding, 4},
	} {
		j.Trace(machine.Transition{From: tt.from, To: tt.to, State: j.state(), Event: machine.Event{At: at.Add(time.Duration(i) * time.Second)}})
		got := j.Started()
		if (got == nil) != (tt.want < 0) || got != nil && !got.Equal(at.Add(time.Duration(tt.want)*time.Second)) {
			t.Errorf("%s to %s: started %v, want after %d s", tt.from, tt.to, got, tt.want)
		}
	}
}

// TestDiskHangs: the machine's loop tells of its transitions whatever the disk does.
func TestDiskHangs(t *testing.T) {
	j, _ := newJournal(t)
	j.Close()
	hang := make(chan struct{})
	var last []byte
	j.lines = linequeue.New(func(line []byte) { <-hang; last = line }, j.dropped)
	for range 100_000 { // it would never return
		j.Trace(machine.Transition{From: machine.Running, To: machine.Stopping, State: j.state()})
	}
	close(hang)
	j.Close()
	if !strings.Contains(string(last), `"event":"dropped"`) || !strings.Contains(string(last), "events were dropped") {
		t.Errorf("last line %s, want the number of those that were dropped", last)
	}
}
