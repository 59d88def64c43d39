// Package nomadserver starts a real Nomad for tests, server and client in one, on 127.0.0.1, with the drivers raw_exec
// and exec. Enters a test; leaves an agent that has a leader and a node, takes jobs, tells what became of them, and is
// gone when the test ends, however it ends, with all that its jobs run and mounted. The binary comes from
// `scripts/lab/nomad build`; without it, and with -short, the test is skipped (package need).
package nomadserver

import (
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/jail"
	"github.com/muster-agent/muster/tests/servers/ports"
)

//go:embed agent.hcl
var agentHCL string

// watchdog bounds every wait of this package. It only ever ends a test that has gone wrong.
const watchdog = 60 * time.Second

// Options are a test's wishes; the zero value is a good server.
type Options struct {
	// Chroot is what a task of the driver exec finds beside a shell: its path by this machine's.
	Chroot map[string]string
	// Config is further agent configuration in HCL.
	Config string
	// Env are variables NAME=VALUE of the agent's, which its tasks inherit.
	Env []string
}

// Server is one Nomad agent. Its methods are for one goroutine at a time and end the test on errors.
type Server struct {
	// HTTPAddr is HOST:PORT of the HTTP API.
	HTTPAddr string
	// Dir holds `alloc/`, `data/` and `nomad.log`.
	Dir string

	t       testing.TB
	binary  string
	environ []string
	jail    *jail.Jail
	run     *jail.Process
	cgroups string   // the parent of its control groups
	tasks   []string // those that it made in /nomad, whatever it is told, as they were at its end
}

// Start starts an agent and returns once it has a leader and its node takes work. What its jobs run are processes of
// its jail, on the network and the files of this machine.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real Nomad: not with -short")
	}
	binary, err := Binary()
	if err != nil {
		need.Skip(t, err.Error())
	}
	need.Root(t)
	sweep()
	p, low := ports.Claim(t, 3), claimRange(t)
	dir, err := os.MkdirTemp("", "nomad-") //nolint:usetesting // short: a socket's path has 107 bytes
	// Nomad closes data_dir to the processes of agents that are root: the way to their work folders is another.
	if err := errors.Join(err, os.Chmod(dir, 0o711)); err != nil { //nolint:gosec // see above
		t.Fatal(err)
	}
	s := &Server{
		HTTPAddr: fmt.Sprintf("127.0.0.1:%d", p[0]), Dir: dir, t: t, binary: binary, environ: o.Env,
		cgroups: fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), p[0]),
	}
	config := fmt.Sprintf(`
data_dir = %q
ports {
  http = %d
  rpc  = %d
  serf = %d
}
client {
  alloc_dir        = %q
  cgroup_parent    = "/%s"
  min_dynamic_port = %d
  max_dynamic_port = %d
  chroot_env {
%s  }
}
%s`, filepath.Join(s.Dir, "data"), p[0], p[1], p[2], filepath.Join(s.Dir, "alloc"), s.cgroups, low, low+rangeSize-1,
		chroot(o.Chroot), o.Config)
	for name, text := range map[string]string{"agent.hcl": agentHCL, "test.hcl": config} {
		if err := os.WriteFile(filepath.Join(s.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(s.end) // after the jail's
	s.jail = jail.New(t)
	t.Cleanup(s.noteTasks)
	s.start()
	return s
}

func chroot(paths map[string]string) string {
	var b strings.Builder
	for from, to := range paths {
		fmt.Fprintf(&b, "    %q = %q\n", from, to)
	}
	return b.String()
}

// Binary is the Nomad to start: MUSTER_NOMAD, else what `scripts/lab/nomad build` left in the cache. The error says
// what to do when it is not there.
func Binary() (string, error) {
	path := os.Getenv("MUSTER_NOMAD")
	if path == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		path = filepath.Join(cache, "muster", "nomad-1.6.0", "nomad")
	}
	if _, err := exec.LookPath(path); err != nil {
		return "", fmt.Errorf("no Nomad at %s (make it with scripts/lab/nomad build): %w", path, err)
	}
	return path, nil
}

// Jail is where the agent and all that its jobs run live.
func (s *Server) Jail() *jail.Jail { return s.jail }

// Stop ends the agent by SIGTERM; its tasks run on without it, and Restart finds them again.
func (s *Server) Stop() {
	s.t.Helper()
	if err := s.run.End(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
}

// Restart starts the agent again, stopping it before if it runs.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	s.start()
}

func (s *Server) start() {
	s.t.Helper()
	cmd := exec.Command(s.binary, "agent", "-config="+filepath.Join(s.Dir, "agent.hcl"),
		"-config="+filepath.Join(s.Dir, "test.hcl"))
	cmd.Env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C",
		"TMPDIR=" + os.TempDir(),
	}
	cmd.Env = append(cmd.Env, s.environ...)
	run, err := s.jail.Start(cmd, filepath.Join(s.Dir, "nomad.log"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.run = run
	if err := run.Await(watchdog, s.ready); err != nil {
		s.t.Fatal(err)
	}
}

// ready fails while there is no leader or the node takes no work.
func (s *Server) ready() error {
	var nodes []struct {
		Status, SchedulingEligibility string
		Drivers                       map[string]struct{ Healthy bool }
	}
	if err := s.get("/v1/nodes", &nodes); err != nil {
		return err
	}
	for _, n := range nodes {
		if n.Status == "ready" && n.SchedulingEligibility == "eligible" && n.Drivers["raw_exec"].Healthy &&
			n.Drivers["exec"].Healthy {
			return nil
		}
	}
	return errors.New("no node is ready")
}

// end is the clean-up: it leaves nothing.
func (s *Server) end() {
	if s.t.Failed() && s.run != nil {
		s.t.Logf("the end of %s:\n%s", filepath.Join(s.Dir, "nomad.log"), s.run.LogTail())
	}
	removeCgroups(s.cgroups)
	for _, task := range s.tasks {
		removeCgroups(task)
	}
	removeCgroups(fixed) // when it is empty
	if err := os.RemoveAll(s.Dir); err != nil {
		s.t.Errorf("what Nomad left: %v", err)
	}
}

// noteTasks notes the groups of tasks that run: who made them will not live to remove them.
func (s *Server) noteTasks() {
	for _, pid := range s.jail.Processes() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		if err != nil {
			continue // it has ended
		}
		for line := range strings.Lines(string(text)) {
			_, path, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":/")
			if strings.HasPrefix(path, fixed+"/") {
				s.tasks = append(s.tasks, path)
			}
		}
	}
}

// fixed is where Nomad makes the groups of tasks of exec, and of those of raw_exec that it freezes to kill them.
const fixed = "nomad"

// prefix begins the names of our control groups; the pid of the test process follows.
const prefix = "muster-test-nomad-"

// sweep removes the control groups of test processes that were killed before they could.
func sweep() {
	left, _ := filepath.Glob("/sys/fs/cgroup/*/" + prefix + "*") // only a bad pattern is an error
	for _, folder := range left {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(folder), prefix), "-")
		if _, err := os.Stat("/proc/" + pid); errors.Is(err, os.ErrNotExist) {
			removeCgroups(filepath.Base(folder))
		}
	}
	left, _ = filepath.Glob("/sys/fs/cgroup/*/" + fixed + "/*")
	for _, folder := range left { // whose they are does not stand in their names
		if info, err := os.Stat(folder); err == nil && time.Since(info.ModTime()) > time.Hour {
			_ = os.Remove(folder) // only empty ones can be removed
		}
	}
}

// removeCgroups removes empty control groups of that name in all hierarchies.
func removeCgroups(name string) {
	tops, _ := filepath.Glob("/sys/fs/cgroup/*/" + name)
	v2, _ := filepath.Glob("/sys/fs/cgroup/" + name)
	for _, top := range append(tops, v2...) {
		var folders []string
		_ = filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				folders = append(folders, path)
			}
			return nil
		})
		for _, folder := range slices.Backward(folders) { // the innermost first
			_ = os.Remove(folder)
		}
	}
}

// rangeSize is how many dynamic ports an agent deals out. Nomad looks at no other agent's and not at what is bound.
const rangeSize = 64

// claimRange claims dynamic ports for an agent from 10000 to 11999, for the life of the test; the answer is the first.
func claimRange(t testing.TB) int {
	t.Helper()
	for low := 10000; low+rangeSize <= 12000; low += rangeSize {
		lock, err := net.Listen("unix", "@muster-test/ports/"+strconv.Itoa(low))
		if err != nil {
			continue
		}
		t.Cleanup(func() { lock.Close() })
		return low
	}
	t.Fatal("no range of ports is free for a Nomad")
	return 0
}
