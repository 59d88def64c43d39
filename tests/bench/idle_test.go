package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/sandbox/proc"
	"github.com/muster-agent/muster/tests/binary"
	"github.com/muster-agent/muster/tests/folder"
)

// settle is how long agents and shims have had nothing to do when they are looked at.
const settle = 5 * time.Second

// BenchmarkIdle is the memory of agents and guards whose processes sleep, beside containerd's shims: the sums over all
// of one kind.
func BenchmarkIdle(b *testing.B) {
	if testing.Short() {
		b.Skip("starts whole gangs")
	}
	for _, n := range []int{1, 8} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			code, err := binary.With(func(muster string) int {
				for b.Loop() {
					idleAgents(b, muster, n)
				}
				return 0
			})
			if err != nil || code != 0 {
				b.Fatal(code, err)
			}
			if os.Getenv(containerdVariable) != "" {
				idleShims(b, n)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func idleAgents(b *testing.B, muster string, n int) {
	dir, state := folder.Temp(b, "muster-bench-"), folder.Temp(b, "muster-bench-")
	app := writeApp(b, dir, n, "exec sleep 1000000")
	run := exec.Command(muster, "run", app, "--app-id", fmt.Sprintf("bench-%d-%d", os.Getpid(), n), "--work-dir", filepath.Join(dir, "work"),
		"--state-dir", state, "--output", "lines")
	run.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	said, err := os.Create(filepath.Join(dir, "said"))
	if err != nil {
		b.Fatal(err)
	}
	defer said.Close()
	run.Stdout, run.Stderr = said, said
	if err := run.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = run.Process.Signal(syscall.SIGTERM) // it may have ended, which the measurement has told
		_ = run.Wait()                          // interrupted is not 0
		if b.Failed() {
			text, _ := os.ReadFile(said.Name())
			b.Logf("muster run said:\n%s", text)
		}
	}()
	top := run.Process.Pid
	sleeps := func(s proc.Stat, _ []string) bool { return s.Name == "sleep" }
	await(b, "all processes of the app", func() bool { return len(descendants(b, top, sleeps)) == n })
	time.Sleep(settle)
	agents := descendants(b, top, func(_ proc.Stat, argv []string) bool { return len(argv) > 1 && argv[1] == "agent" })
	var guards []int // the sleepers' parents, whatever the engine calls them
	for _, pid := range descendants(b, top, sleeps) {
		s, err := proc.Host{}.Stat(pid)
		if err != nil {
			b.Fatal(err)
		}
		guards = append(guards, s.PPID)
	}
	if len(agents) != n {
		b.Fatalf("%d agents, want %d", len(agents), n)
	}
	memoryOf(b, agents).report(b, "agent")
	memoryOf(b, guards).report(b, "guard")
	memoryOf(b, append(agents, guards...)).report(b, "agent+guard")
}

// writeApp lays out an app of n processes that run a command.
func writeApp(b *testing.B, dir string, n int, command string) string {
	b.Helper()
	app := filepath.Join(dir, "app")
	if err := os.MkdirAll(app, 0o755); err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string]string{
		"metainfo.json": `{"schemaVersion": "2.1", "application": {"name": "sleepers", "version": "1",
			"components": [{"name": "worker", "category": "SLAVE"}]}}`,
		"appConfig.default.json": `{"schema": "http://example.org/specification/v2.0.0",
			"global": {"muster.framework": "none", "muster.command": ` + strconv.Quote(command) + `}, "components": {}}`,
		"resources.default.json": fmt.Sprintf(`{"schema": "http://example.org/specification/v2.0.0", "global": {}, "components":
			{"worker": {"yarn.role.priority": "1", "yarn.component.instances": "%d", "yarn.memory": "64", "yarn.vcores": "1"}}}`, n),
	} {
		if err := os.WriteFile(filepath.Join(app, name), []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return app
}
