package pai_test

import (
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/need"
)

// A failure is told as PAI's launcher reads it: between two markers, by the codes of PAI's table beside the task's own.
func TestExitReport(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, command string
		code          int // of muster run: the task's own
		want          []string
	}{
		{"a code", "echo no such file >&2; exit 1", 1, []string{"exitcode: 255", "originalUserExitCode: 1", "no such file"}},
		{"a signal", "kill -SEGV $$", 139, []string{"exitcode: 139", "originalUserExitCode: 139", `caughtSignal: "11"`}},
		{"memory", "exec python3 -c 'x = b\\\"x\\\" * 300_000_000'", 137, []string{"exitcode: 196", `dockerStatus: "OOMKilled"`, "originalUserExitCode: 137"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			need.Root(t)
			t.Parallel()
			j := newJob(t, `{"jobName": "report", "image": "none", "jobEnvs": {}, "taskRoles": [{"name": "task", "command": "`+tt.command+`"}]}`)
			e := j.onHost("--pai-exit-report", "--engine", "container")
			e.is(t, "failed", tt.code, 1, "task-0")
			_, block, begins := strings.Cut(e.said, "[PAI_RUNTIME_ERROR_START]\n")
			block, _, ends := strings.Cut(block, "[PAI_RUNTIME_ERROR_END]\n")
			if !begins || !ends {
				t.Fatalf("no block on stderr:\n%s", e.said)
			}
			for _, want := range tt.want {
				if !strings.Contains(block, want) {
					t.Errorf("%q is not in\n%s", want, block)
				}
			}
			e = j.onHost("--engine", "container")
			if strings.Contains(e.said, "[PAI_") {
				t.Errorf("a block that nobody asked for:\n%s", e.said)
			}
		})
	}
}
