package hadoop

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/muster-agent/muster/tests/child"
)

// daemon is one server of the cluster, which may be down. Its process dies with the test's, even with one that is
// killed; one of the lab lives on and is known by the pid in its file.
type daemon struct {
	name, program, log, pidFile string
	args, env                   []string
	outlives                    bool

	pid   int             // 0 while down
	gone  <-chan struct{} // closed when it has been reaped
	since int64           // where this run's part of the log begins, in bytes
}

func (c *Cluster) daemon(name string, args []string) *daemon {
	return &daemon{
		name: name, program: c.home.java, args: args, env: c.Environ(), outlives: c.outlives,
		log: filepath.Join(c.Dir, "logs", name+".log"), pidFile: filepath.Join(c.Dir, name+".pid"),
	}
}

// start starts the daemon with its output appended to its log.
func (d *daemon) start() error {
	if d.running() || d.outlives && d.adopt() {
		return nil
	}
	out, err := os.OpenFile(d.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	if d.since, err = out.Seek(0, 2); err != nil {
		return err
	}
	cmd := exec.Command(d.program, d.args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = out, out, d.env
	if d.outlives {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	p, err := child.Start(cmd)
	if err != nil {
		return fmt.Errorf("start %s: %w", d.name, err)
	}
	d.pid, d.gone = p.PID, p.Gone
	return os.WriteFile(d.pidFile, fmt.Appendf(nil, "%d\n", d.pid), 0o644)
}

func (d *daemon) running() bool {
	if d.pid == 0 {
		return false
	}
	select {
	case <-d.gone:
		return false
	default:
		return true
	}
}

// kill ends the daemon by SIGKILL.
func (d *daemon) kill() { _ = d.end(syscall.SIGKILL) }

// end sends the signal and waits until the daemon is gone. On one that is down it does nothing.
func (d *daemon) end(sig syscall.Signal) error {
	if d.pid == 0 {
		return nil
	}
	defer func() { d.pid = 0 }()
	if d.running() {
		if err := syscall.Kill(d.pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("%s: %w", d.name, err)
		}
	}
	dog := time.NewTimer(watchdog)
	defer dog.Stop()
	select {
	case <-d.gone:
		return nil
	case <-dog.C:
		_ = syscall.Kill(d.pid, syscall.SIGKILL)
		<-d.gone
		return fmt.Errorf("%s did not end within %s of %s", d.name, watchdog, sig)
	}
}

// adopt finds the process of an earlier `up` by its pid file; false when it runs no more.
func (d *daemon) adopt() bool {
	b, err := os.ReadFile(d.pidFile)
	if err != nil {
		return false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return false
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !strings.Contains(string(line), filepath.Dir(d.pidFile)) {
		return false // the pid is somebody else's by now
	}
	gone := make(chan struct{})
	d.pid, d.gone = pid, gone
	go func() {
		for syscall.Kill(pid, 0) == nil {
			time.Sleep(50 * time.Millisecond) // not our child: nobody tells us
		}
		close(gone)
	}()
	return true
}

// said is what the daemon wrote in this run.
func (d *daemon) said() string {
	b, err := os.ReadFile(d.log)
	if err != nil || int64(len(b)) < d.since {
		return ""
	}
	return string(b[d.since:])
}

func (d *daemon) logTail() string {
	const most = 4 << 10
	said := d.said()
	return said[max(0, len(said)-most):]
}
