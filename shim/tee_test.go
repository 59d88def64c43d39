package shim

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/launcher"
)

// A launcher gets whole lines of both streams, those of the end too, and none that was written before.
func TestTee(t *testing.T) {
	dir := t.TempDir()
	add := func(name, text string) {
		t.Helper()
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(text)
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	add("stdout.log", "of an earlier agent\n")
	end := tee(t.Context(), dir, Output{Stdout: &out, Stderr: &errs}, slog.New(slog.DiscardHandler), time.Minute)
	add("stdout.log", "step 1\nstep ")
	add("stderr.log", "Traceback\n")
	add("stdout.log", "2")
	end()
	if got := out.String(); got != "step 1\nstep 2\n" {
		t.Errorf("stdout: got %q", got)
	}
	if got := errs.String(); got != "Traceback\n" {
		t.Errorf("stderr: got %q", got)
	}
}

// A launcher that does not read its pipe, or has closed it, holds up the end of the copy for the patience alone.
func TestTeeUnread(t *testing.T) {
	for _, c := range []struct {
		name, want string
		patience   time.Duration
		closed     bool
	}{
		{"not read", "the launcher does not read it", time.Millisecond, false},
		{"closed", "no longer copied", time.Minute, true},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "stdout.log"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		reader, writer := io.Pipe()
		if c.closed {
			_ = reader.Close() // never fails
		}
		var log bytes.Buffer
		end := tee(t.Context(), dir, Output{Stdout: writer, Stderr: io.Discard}, slog.New(slog.NewTextHandler(&log, nil)), c.patience)
		if err := os.WriteFile(filepath.Join(dir, "stdout.log"), []byte("lost\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		end()
		if !strings.Contains(log.String(), c.want) {
			t.Errorf("%s: got %q, want %q in it", c.name, log.String(), c.want)
		}
		_ = reader.Close() // never fails; ends the copy
	}
}

func TestTees(t *testing.T) {
	yes, no := true, false
	for name, want := range map[launcher.Name]bool{
		"nomad": true, "kubernetes": true, "slurm": true, "systemd": true, "yarn": false, launcher.Shell: false,
	} {
		a := &agent{self: self{id: identity{found: launcher.Found{Name: name}}}}
		if a.tees() != want {
			t.Errorf("%s: got %t", name, a.tees())
		}
		for _, asked := range []*bool{&yes, &no} {
			a.output.Tee = asked
			if a.tees() != *asked {
				t.Errorf("%s, --tee=%t: got %t", name, *asked, a.tees())
			}
		}
	}
}
