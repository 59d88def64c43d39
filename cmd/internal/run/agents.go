package run

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/mask"
	"github.com/muster-agent/muster/shim/tail"
)

// child is one agent process of a run, over its relaunches.
type child struct {
	instance registry.Instance

	mu       sync.Mutex
	cmd      *exec.Cmd
	lifeline *os.File
	words    *tail.Buffer // what the agent said on stderr
	launched []time.Time
	code     int
	signal   syscall.Signal
	over     bool // the process is gone
	taken    bool // and the run's loop has taken its end
}

// ended says that an agent process is gone.
type ended struct {
	child  *child
	code   int
	signal syscall.Signal // 0: it exited by itself
}

// launch starts the agent of one instance. It gets a lifeline: when this process dies, it stops in grace.
// counts are those in force, or to be.
func (r *runner) launch(c *child, counts map[string]int, tell chan<- ended) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args, err := r.agentArgs(c.instance, counts)
	if err != nil {
		return err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	args, given := mask.Hand(args)
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), given...)
	cmd.ExtraFiles = []*os.File{read} // descriptor 3
	cmd.Stderr = c.words
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the terminal's Ctrl-C is for us alone
	err = cmd.Start()
	_ = read.Close() // the child has its own
	if err != nil {
		_ = write.Close() // nobody reads it
		return fmt.Errorf("start the agent of %s: %w", c.instance, err)
	}
	c.mu.Lock()
	c.cmd, c.lifeline, c.over, c.taken = cmd, write, false, false
	c.launched = append(c.launched, time.Now())
	c.mu.Unlock()
	go func() {
		_ = cmd.Wait() // ProcessState has it whole
		_ = write.Close()
		e := ended{child: c, code: cmd.ProcessState.ExitCode()}
		if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			e.signal = ws.Signal()
		}
		c.mu.Lock()
		c.over, c.code, c.signal = true, e.code, e.signal
		c.mu.Unlock()
		tell <- e
	}()
	return nil
}

func (r *runner) agentArgs(in registry.Instance, counts map[string]int) ([]string, error) {
	definition, err := r.flags.App.Args()
	if err != nil {
		return nil, err
	}
	args := []string{
		"agent", "--app", r.app.Ref, "--app-id", r.appID, "--run", r.runID,
		"--component", in.Component, "--index", strconv.Itoa(in.Index), "--registry", r.address.String(), "--launcher",
		"shell",
		"--work-dir", r.workDir, "--log-dir", r.logDir, "--state-dir", string(r.state), "--ports", r.flags.Ports,
		"--lifeline-fd", "3",
		"--engine", r.flags.Engine, "--require-limits=" + strconv.FormatBool(r.flags.RequireLimits),
	}
	args = append(args, r.flags.Policy.Args()...)
	if r.flags.Host != "" {
		args = append(args, "--host", r.flags.Host)
	}
	for _, e := range r.flags.Env {
		args = append(args, "--env", e)
	}
	args = append(append(args, r.flags.Filesystem.Args()...), definition...)
	if n, ok := counts[in.Component]; ok && n != r.app.Component(in.Component).Instances {
		args = append(args, "--instances", in.Component+"="+strconv.Itoa(n))
	}
	return append(args, r.flags.Registry.Args()...), nil
}

func (c *child) send(sig syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd != nil && !c.over {
		_ = c.cmd.Process.Signal(sig) // it has just ended
	}
}

// live tells that the agent lives, or that its end is not taken yet: it may be launched again.
func (c *child) live() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cmd != nil && !c.taken
}

// take notes that the run's loop has taken the agent's end.
func (c *child) take() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken = true
}

// mayRelaunch bounds how often an agent that dies by itself is started again.
func (c *child) mayRelaunch(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	recent := 0
	for _, t := range c.launched {
		if now.Sub(t) < 5*time.Minute {
			recent++
		}
	}
	return recent <= 5
}
