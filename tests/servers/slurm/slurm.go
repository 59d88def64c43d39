// Package slurm starts a real Slurm for tests: a controller and nodes on 127.0.0.1, munge with a key of its own. Enters
// a test and its wishes; leaves nodes that take jobs, whose states it tells, and is gone when the test ends, however it
// ends, with all that its jobs run. Its programs come from `scripts/lab/slurm build`; without them, without root and
// with -short, the test is skipped (package need).
package slurm

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/jail"
	"github.com/muster-agent/muster/tests/servers/ports"
)

// watchdog bounds every wait of this package. It only ever ends a test that has gone wrong.
const watchdog = 60 * time.Second

// Options are a test's wishes; the zero value is two nodes.
type Options struct {
	// Nodes is how many there are, named node0, node1, …; 0 means 2. Each has 8 CPUs.
	Nodes int
	// Config is further lines for slurm.conf, as RequeueExit=75 or KillWait=5.
	Config string
}

// Cluster is one Slurm. Its methods end the test on errors.
type Cluster struct {
	// Conf is slurm.conf: SLURM_CONF.
	Conf string
	// Dir holds state and logs.
	Dir string

	t      testing.TB
	folder string
	jail   *jail.Jail
	run    *jail.Process
}

// Start starts a cluster and returns when all its nodes are idle.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real Slurm: not with -short")
	}
	need.Root(t)
	folder, err := Folder()
	if err != nil {
		need.Skip(t, err.Error())
	}
	dir, err := os.MkdirTemp("", "slurm-") //nolint:usetesting // short: a socket's path has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{Conf: filepath.Join(dir, "slurm.conf"), Dir: dir, t: t, folder: folder}
	t.Cleanup(c.end) // after the jail's
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(filepath.Join(dir, "extra.conf"), []byte(o.Config+"\n"),
		0o644)); err != nil {
		t.Fatal(err)
	}
	nodes := o.Nodes
	if nodes == 0 {
		nodes = 2
	}
	configure := []string{folder, dir}
	for _, port := range ports.Claim(t, nodes+1) {
		configure = append(configure, strconv.Itoa(port))
	}
	if out, err := exec.CommandContext(t.Context(), beside("configure"), configure...).CombinedOutput(); err != nil {
		t.Fatalf("configure a Slurm: %v\n%s", err, out)
	}
	c.jail = jail.New(t)
	if c.run, err = c.jail.Start(exec.Command(beside("daemons"), folder, dir),
		filepath.Join(dir, "log", "jail.out")); err != nil {
		t.Fatal(err)
	}
	if err := c.run.Await(watchdog, func() error { return c.idle(nodes) }); err != nil {
		t.Fatal(err)
	}
	return c
}

// Folder is what `scripts/lab/slurm build` left. The error says what to do when it is not there.
func Folder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	pattern := filepath.Join(cache, "muster", "*-slurm-*", "bin", "sbatch")
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("no Slurm at %s (get it with scripts/lab/slurm build): %w", pattern, os.ErrNotExist)
	}
	return strings.TrimSuffix(found[len(found)-1], "/bin/sbatch"), nil
}

// beside is a script of this folder.
func beside(name string) string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(here), name)
}

// idle fails while not all nodes are.
func (c *Cluster) idle(nodes int) error {
	out, err := c.Try("sinfo", "--noheader", "--Node", "--format=%T")
	if err != nil {
		return err
	}
	if strings.Count(out, "idle\n") != nodes {
		return fmt.Errorf("nodes are %q", strings.Fields(out))
	}
	return nil
}

func (c *Cluster) end() {
	if c.t.Failed() {
		logs, _ := filepath.Glob(filepath.Join(c.Dir, "log", "*.log"))
		for _, path := range logs {
			text, _ := os.ReadFile(path)
			c.t.Logf("the end of %s:\n%s", path, text[max(0, len(text)-3000):])
		}
	}
	if err := os.RemoveAll(c.Dir); err != nil {
		c.t.Errorf("what Slurm left: %v", err)
	}
}

// Jail is where the daemons and all that jobs run live. The names of nodes are known there alone.
func (c *Cluster) Jail() *jail.Jail { return c.jail }

// Bin is the folder of sbatch, srun, squeue and the others.
func (c *Cluster) Bin() string { return filepath.Join(c.folder, "bin") }

// Environ is what a person has who submits jobs, and so what the jobs get.
func (c *Cluster) Environ() []string {
	return []string{
		"PATH=" + c.Bin() + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "SLURM_CONF=" + c.Conf,
		"HOME=/root", "LANG=C",
	}
}

// Try runs a command of Slurm's, as scontrol, and returns what it wrote to stdout.
func (c *Cluster) Try(name string, args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(c.Bin(), name), args...)
	cmd.Env = c.Environ()
	return c.jail.Output(cmd)
}

// Run is Try for what has to work.
func (c *Cluster) Run(name string, args ...string) string {
	c.t.Helper()
	out, err := c.Try(name, args...)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}
