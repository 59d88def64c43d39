package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	apitest "k8s.io/cri-api/pkg/apis/testing"
	"k8s.io/klog/v2"
)

// runtimeService runs a container as a process in namespaces of its own, with the capabilities that containers have.
// Every image is this machine's root, to which the container writes in memory; the pod's volumes are mounted there. The
// network is the machine's, and every pod's address is 127.0.0.1.
type runtimeService struct {
	*apitest.FakeRuntimeService // keeps the list of sandboxes and containers

	dir string
	mu  sync.Mutex
	all map[string]*process
}

// process is a container, from its creation to its removal.
type process struct {
	spec spec
	log  string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// spec is what the container's first process is told.
type spec struct {
	Root, Dir string
	Mounts    []*cri.Mount
	Argv      []string
	UID, GID  int
}

func newRuntime(dir string) *runtimeService {
	apitest.FakePodSandboxIPs = []string{"127.0.0.1"}
	list := apitest.NewFakeRuntimeService()
	list.FakeStatus = &cri.RuntimeStatus{Conditions: []*cri.RuntimeCondition{
		{Type: "RuntimeReady", Status: true}, {Type: "NetworkReady", Status: true},
	}}
	return &runtimeService{FakeRuntimeService: list, dir: dir, all: map[string]*process{}}
}

func (r *runtimeService) CreateContainer(
	ctx context.Context, sandbox string, c *cri.ContainerConfig, pod *cri.PodSandboxConfig,
) (string, error) {
	id, err := r.FakeRuntimeService.CreateContainer(ctx, sandbox, c, pod)
	if err != nil {
		return "", err
	}
	user := c.GetLinux().GetSecurityContext()
	p := &process{
		log: filepath.Join(pod.GetLogDirectory(), c.GetLogPath()),
		spec: spec{
			Root: filepath.Join(r.dir, id), Dir: c.GetWorkingDir(), Mounts: c.GetMounts(),
			Argv: slices.Concat(c.GetCommand(), c.GetArgs()),
			UID:  int(user.GetRunAsUser().GetValue()), GID: int(user.GetRunAsGroup().GetValue()),
		},
		done: make(chan struct{}),
	}
	p.cmd = exec.Command("/proc/self/exe") //nolint:noctx // it lives until the kubelet ends it
	p.cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	for _, e := range c.GetEnvs() {
		p.cmd.Env = append(p.cmd.Env, e.GetKey()+"="+e.GetValue())
	}
	r.Lock()
	r.Containers[id].LogPath = p.log // the kubelet removes all whose names begin so
	r.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[id] = p
	return id, nil
}

func (r *runtimeService) StartContainer(ctx context.Context, id string) error {
	p, err := r.find(id)
	if err != nil {
		return err
	}
	text, err := json.Marshal(p.spec)
	if err != nil {
		return err
	}
	for _, at := range []string{p.spec.Root, filepath.Dir(p.log)} {
		if err := os.MkdirAll(at, 0o700); err != nil {
			return err
		}
	}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	p.cmd.Args, p.cmd.Stdout, p.cmd.Stderr = []string{containerInit, string(text)}, out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	if err := r.FakeRuntimeService.StartContainer(ctx, id); err != nil {
		return errors.Join(err, p.cmd.Process.Kill())
	}
	go r.wait(id, p)
	return nil
}

// wait writes down the end of a container.
func (r *runtimeService) wait(id string, p *process) {
	_ = p.cmd.Wait() // its state says all
	code, reason := p.cmd.ProcessState.ExitCode(), "Completed"
	if s, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		code = 128 + int(s.Signal())
	}
	if code != 0 {
		reason = "Error"
	}
	if code == notEntered {
		text, _ := os.ReadFile(p.log) // what it says is all that there is
		klog.Errorf("%s: the container was not entered: %s", id, text)
	}
	r.Lock()
	if c := r.Containers[id]; c != nil {
		c.State, c.ExitCode, c.Reason = cri.ContainerState_CONTAINER_EXITED, int32(code), reason //nolint:gosec // ≤ 255
		c.FinishedAt = time.Now().UnixNano()
	}
	r.Unlock()
	close(p.done)
}

// StopContainer signals SIGTERM, and SIGKILL to what is left after the time.
func (r *runtimeService) StopContainer(_ context.Context, id string, seconds int64) error {
	p, err := r.find(id)
	if err != nil || p.cmd.Process == nil {
		return err
	}
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		select {
		case <-p.done:
			return nil
		case <-time.After(time.Duration(seconds) * time.Second):
		}
	}
	<-p.done
	return nil
}

func (r *runtimeService) RemoveContainer(ctx context.Context, id string) error {
	r.mu.Lock()
	p := r.all[id]
	delete(r.all, id)
	r.mu.Unlock()
	if p != nil {
		_ = os.Remove(p.spec.Root) // its file systems went with its namespaces
	}
	return r.FakeRuntimeService.RemoveContainer(ctx, id)
}

func (r *runtimeService) find(id string) (*process, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.all[id]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("container %s: there is none", id)
}

// notEntered is the end of a container whose command was not reached.
const notEntered = 128

// containerInit is the name under which this program is a container's first process.
const containerInit = "container-init"

// capabilities are those that container engines leave to root unless they are told otherwise.
const capabilities = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FSETID | 1<<unix.CAP_FOWNER |
	1<<unix.CAP_MKNOD | 1<<unix.CAP_NET_RAW | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID | 1<<unix.CAP_SETFCAP |
	1<<unix.CAP_SETPCAP | 1<<unix.CAP_NET_BIND_SERVICE | 1<<unix.CAP_SYS_CHROOT | 1<<unix.CAP_KILL |
	1<<unix.CAP_AUDIT_WRITE

// enter makes the container's root, goes there and becomes the command; it returns only what went wrong.
func enter(args []string) error {
	var s spec
	if err := json.Unmarshal([]byte(strings.Join(args, " ")), &s); err != nil {
		return err
	}
	if len(s.Argv) == 0 {
		return errors.New("no command, and the image has none")
	}
	root, err := s.build()
	if err != nil {
		return err
	}
	// Not by chroot: who is in one makes no user namespaces.
	if err := errors.Join(os.Chdir(root), unix.PivotRoot(".", "."), unix.Unmount(".", unix.MNT_DETACH)); err != nil {
		return fmt.Errorf("root %s: %w", root, err)
	}
	if err := os.Chdir(max(s.Dir, "/")); err != nil {
		return err
	}
	program, err := exec.LookPath(s.Argv[0])
	if err != nil {
		return err
	}
	for c := range unix.CAP_LAST_CAP + 1 {
		if capabilities&(1<<c) == 0 {
			_ = unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0) // fails for those that this kernel does not know
		}
	}
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(s.GID), syscall.Setuid(s.UID)); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", program, syscall.Exec(program, s.Argv, os.Environ()))
}

// build mounts the container's file systems and returns its root.
func (s spec) build() (string, error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return "", fmt.Errorf("mounts of its own: %w", err)
	}
	if err := unix.Mount("tmpfs", s.Root, "tmpfs", 0, ""); err != nil {
		return "", fmt.Errorf("tmpfs on %s: %w", s.Root, err)
	}
	root := filepath.Join(s.Root, "root")
	upper, work := filepath.Join(s.Root, "upper"), filepath.Join(s.Root, "work")
	for _, at := range []string{root, upper, work} {
		if err := os.Mkdir(at, 0o755); err != nil {
			return "", err
		}
	}
	if err := unix.Mount("overlay", root, "overlay", 0, "lowerdir=/,upperdir="+upper+",workdir="+work); err != nil {
		return "", fmt.Errorf("overlay on %s: %w", root, err)
	}
	if err := unix.Mount("proc", root+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return "", fmt.Errorf("proc: %w", err)
	}
	if err := unix.Mount("/sys", root+"/sys", "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return "", fmt.Errorf("sys: %w", err)
	}
	if err := unix.MountSetattr(-1, root+"/sys", unix.AT_RECURSIVE,
		&unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return "", fmt.Errorf("sys, read-only: %w", err)
	}
	if err := devices(root + "/dev"); err != nil {
		return "", err
	}
	for _, m := range s.Mounts {
		if err := bind(m.GetHostPath(), root+m.GetContainerPath(), m.GetReadonly()); err != nil {
			return "", err
		}
	}
	return root, nil
}

func devices(dev string) error {
	if err := unix.Mount("tmpfs", dev, "tmpfs", unix.MS_NOSUID, "mode=755"); err != nil {
		return fmt.Errorf("tmpfs on %s: %w", dev, err)
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		if err := bind("/dev/"+name, dev+"/"+name, false); err != nil {
			return err
		}
	}
	for name, to := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(to, dev+"/"+name); err != nil {
			return err
		}
	}
	return os.Mkdir(dev+"/shm", 0o777)
}

// bind mounts a file or folder on a place that it makes.
func bind(from, at string, readOnly bool) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		err = os.MkdirAll(at, 0o755)
	} else if err = os.MkdirAll(filepath.Dir(at), 0o755); err == nil {
		err = touch(at)
	}
	if err != nil {
		return err
	}
	if err := unix.Mount(from, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("%s on %s: %w", from, at, err)
	}
	if readOnly {
		return unix.Mount("", at, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
	}
	return nil
}

func touch(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o644) //nolint:gosec // a place to mount on
	if err != nil {
		return err
	}
	return f.Close()
}
