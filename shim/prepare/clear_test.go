package prepare

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/muster-agent/muster/shim/sandbox/proc"
	"github.com/muster-agent/muster/shim/status"
)

// Only what a dead agent of this boot's processes has left is cleared: never what one has that cannot be seen from here.
func TestClearDead(t *testing.T) {
	own, err := proc.SelfFacts()
	if err != nil {
		t.Fatal(err)
	}
	ended := exec.CommandContext(t.Context(), "true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	record := func(pid int, start uint64, boot, ns string) status.InstanceFile {
		return status.InstanceFile{Version: 1, Pid: pid, StartTicks: start, BootID: boot, PidNS: ns}
	}
	for name, tt := range map[string]struct {
		file    status.InstanceFile
		cleared bool
	}{
		"alive":                            {record(own.PID, own.Start, own.Boot, own.PidNS), false},
		"dead":                             {record(ended.Process.Pid, 1, own.Boot, own.PidNS), true},
		"its number is somebody else's":    {record(own.PID, own.Start+1, own.Boot, own.PidNS), true},
		"of another pid namespace":         {record(ended.Process.Pid, 1, own.Boot, "1"), false},
		"of a pid namespace nobody knows":  {record(ended.Process.Pid, 1, own.Boot, ""), false},
		"of an earlier boot":               {record(own.PID, own.Start, "an earlier one", own.PidNS), true},
		"of an earlier boot, elsewhere":    {record(own.PID, own.Start, "an earlier one", "1"), true},
		"of a boot that nobody wrote down": {record(ended.Process.Pid, 1, "", own.PidNS), false},
	} {
		t.Run(name, func(t *testing.T) {
			state := status.Dir(filepath.Join(t.TempDir(), "s[1-"))
			dir, path := filepath.Join(t.TempDir(), "container"), filepath.Join(state.App("d1"), "worker-0.json")
			tt.file.Dirs = []string{dir}
			if err := errors.Join(os.Mkdir(dir, 0o700), status.WriteJSON(path, tt.file)); err != nil {
				t.Fatal(err)
			}
			ClearDead(t.Context(), state, own, slog.New(slog.DiscardHandler))
			for _, left := range []string{dir, path} {
				if _, err := os.Lstat(left); errors.Is(err, fs.ErrNotExist) != tt.cleared {
					t.Errorf("%s: %v; want it cleared: %v", left, err, tt.cleared)
				}
			}
		})
	}
}
