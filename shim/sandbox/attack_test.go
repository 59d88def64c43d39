package sandbox

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/cgroup"
	"github.com/muster-agent/muster/shim/sandbox/container"
	"github.com/muster-agent/muster/tests/need"
)

// Known attacks on containers, each with the hole that it once went through.

// CVE-2024-21626: a descriptor of the runtime's leads to the host's files.
func TestAttackNoDescriptorLeadsOut(t *testing.T) {
	parallel(t)
	leak, err := os.Open("/") // ours, as any library's may be
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	if _, err := unix.FcntlInt(leak.Fd(), unix.F_SETFD, 0); err != nil { // not close-on-exec
		t.Fatal(err)
	}
	g := containerGuard(t, nil)
	got := inside(t, g, `for fd in /proc/self/fd/*; do echo "${fd##*/} $(readlink $fd | sed 's/:.*//; s|/proc/[0-9]*/fd|/proc/fd|')"; done; pwd; readlink /proc/self/cwd`)
	// The shell itself has no others: the names come from a folder that it has opened and closed again.
	for line := range strings.Lines(got) {
		switch strings.TrimSpace(line) {
		case "0 /dev/null", "1 pipe", "2 pipe", "3", "3 /proc/fd", "/":
		default:
			t.Errorf("descriptor or folder %q", line)
		}
	}
	for fd := 3; fd < 16; fd++ {
		_, err := g.Start(Spec{Argv: []string{"/bin/true"}, Dir: fmt.Sprintf("/proc/self/fd/%d/.", fd)})
		if err == nil {
			t.Errorf("descriptor %d is a folder", fd)
			await[Empty](t, g)
		}
	}
}

// CVE-2019-5736: the program that makes containers is written to through /proc/<pid>/exe.
func TestAttackOnTheProgram(t *testing.T) {
	parallel(t)
	before := digest(t, self(t))
	g := containerGuard(t, nil)
	got := inside(t, g, `
		for p in /proc/[0-9]*; do
			[ $p = /proc/$$ ] && continue
			(exec 3<$p/exe) 2>/dev/null && [ "$(readlink $p/exe)" != "" ] && case "$(cat $p/comm)" in sh|cat|readlink) ;; *) echo "$p/exe can be read";; esac
			(exec 3>>$p/exe) 2>/dev/null && echo "$p/exe can be written"
		done
		true`)
	if got != "" {
		t.Error(got)
	}
	// Nor by us: what the guard runs is sealed.
	f, err := os.OpenFile(fmt.Sprintf("/proc/%d/exe", g.PID()), os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString("x")
		f.Close()
	}
	if err == nil {
		t.Error("the guard's program was written to")
	}
	if digest(t, self(t)) != before {
		t.Error("the program on the disk has changed")
	}
}

func digest(t *testing.T, path string) string {
	t.Helper()
	return fmt.Sprintf("%x", sha256.Sum256([]byte(readFile(t, path))))
}

// The guard holds descriptors of the host: the folder of the logs, the lifeline.
func TestAttackOnTheGuard(t *testing.T) {
	parallel(t)
	g := containerGuard(t, nil)
	got := inside(t, g, `
		id -u
		for f in environ mem maps auxv; do head -c 1 /proc/1/$f >/dev/null 2>&1 && [ "$(head -c 1 /proc/1/$f | wc -c)" != 0 ] && echo "$f can be read"; done
		(exec 3>/proc/1/mem) 2>/dev/null && echo "mem can be written"
		for f in exe cwd root fd/3 fd/4 fd/5 ns/mnt; do readlink /proc/1/$f >/dev/null 2>&1 && echo "$f can be followed"; done
		kill -KILL 1; kill -STOP 1; kill -TERM 1
		/run/app as-tracer 1
		echo alive`)
	if want := "0\nptrace: operation not permitted\nalive\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A process that has the guard's ids stops it, so that nobody ends the process or holds it to its limits.
func TestAttackStopsTheGuard(t *testing.T) {
	g, held := stoppedGuard(t)
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	if e := await[Gone](t, g); len(e.Left) > 0 {
		t.Errorf("left: %v", e.Left)
	}
	held.wantEnd(t)
}

func asTracer(args []string) error {
	var pid int
	if _, err := fmt.Sscan(args[0], &pid); err != nil {
		return err
	}
	fmt.Println("ptrace:", syscall.PtraceAttach(pid))
	return nil
}

// CVE-2022-0492 and what else a root without CAP_SYS_ADMIN may try, in a user namespace of its own too.
func TestAttackOnKernelFiles(t *testing.T) {
	parallel(t)
	g := containerGuard(t, nil)
	got := inside(t, g, `
		exec 2>/dev/null
		try() { if "$@"; then echo "done: $*"; fi; }
		try mount -t tmpfs none /tmp
		try mount -o remount,rw /usr
		try mount -o remount,bind,rw /usr
		try umount /proc/keys
		try umount /etc/hosts
		try mkdir /sys/fs/cgroup/memory/x
		try mkdir /sys/fs/cgroup/x/y
		for f in /sys/fs/cgroup/*/cgroup.procs /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/*/release_agent /sys/fs/cgroup/devices/devices.allow; do
			[ -e $f ] && try sh -c "echo 0 >$f"
		done
		try sh -c 'echo h >/proc/sysrq-trigger'
		try sh -c 'cat /proc/sys/kernel/core_pattern >/proc/sys/kernel/core_pattern'
		try sh -c 'cat /proc/sys/vm/overcommit_memory >/proc/sys/vm/overcommit_memory'
		try sh -c 'echo -1000 >/proc/self/oom_score_adj'
		try hostname other
		try chroot /proc/1/root true
		try nsenter -t 1 -m true
		try unshare -m true
		[ "$(cat /proc/kcore /proc/keys /proc/timer_list | wc -c)" = 0 ] || echo "masked files have text"
		[ "$(ls /sys/firmware /proc/acpi /proc/scsi | grep -v : | wc -w)" = 0 ] || echo "masked folders have files"
		cat >/tmp/userns <<-'X'
			try() { if "$@"; then echo "in a user namespace: $*"; fi; }
			mkdir -p /tmp/m
			try mount -o remount,rw /usr
			try mount -o remount,bind,rw /usr
			try umount /proc/keys
			try umount /etc/hosts
			try mount -t cgroup -o memory cgroup /tmp/m
			try mount -t sysfs sysfs /tmp/m
			try sh -c 'echo h >/proc/sysrq-trigger'
			try touch /usr/x
		X
		unshare -Urm sh /tmp/userns
		unshare -Urmpf sh -c 'mount -t proc proc /tmp && echo "a proc without masks"'
		echo end`)
	if got != "end\n" {
		t.Errorf("got %q", got)
	}
}

// Nobody makes a node. With a capability that the operator adds, one of a device that is not listed can be made and not
// opened; one that is listed can.
func TestAttackByDeviceNodes(t *testing.T) {
	parallel(t)
	if os.Geteuid() != 0 { // no filter is in force, but in a user namespace nobody makes nodes, and nobody is given any
		got := inside(t, containerGuard(t, nil), `mknod /dev/x c 1 11 2>/dev/null || mknod /tmp/x c 1 3 2>/dev/null || echo "cannot be made"
			for f in /dev/* /dev/*/*; do [ ! -L $f ] && { [ -b $f ] || [ -c $f ]; } && printf "$f "; done; true`)
		if want := "cannot be made\n/dev/full /dev/null /dev/random /dev/tty /dev/urandom /dev/zero /dev/pts/ptmx "; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		return
	}
	node := openable(t)
	script := fmt.Sprintf(`
		mknod /dev/x c 1 11 || echo "cannot be made"
		[ -e /dev/node ] || mknod /dev/node c %d %d
		for f in /dev/x /dev/node; do (exec 3<$f) 2>&1 && echo open; done
		(exec 3<>/dev/null) && (exec 3</dev/urandom) && (exec 3<>/dev/ptmx) && echo standard`, node.Major, node.Minor)
	without := containerGuard(t, func(c *Confinement) { c.App += "-without" })
	if got := inside(t, without, `mknod /dev/x c 1 11 2>/dev/null || mknod /tmp/x c 1 3 2>/dev/null || echo refused`); got != "refused\n" {
		t.Errorf("without the capability: %q", got)
	}
	makers := func(change func(*Confinement)) *Guard { // where the operator has added it, and host ids
		o := containerOptions(t, change)
		o.Confine.IDs = nil
		o.Caps = new(DefaultCaps | 1<<unix.CAP_MKNOD)
		g := startContainerGuard(t, o)
		t.Cleanup(func() {
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		})
		return g
	}
	if got := inside(t, makers(nil), script); strings.Count(got, "Operation not permitted\n") != 2 || !strings.HasSuffix(got, "\nstandard\n") {
		t.Errorf("got %q", got)
	}
	got := inside(t, makers(func(c *Confinement) {
		c.App, c.Nodes = c.App+"-listed", []container.Node{node}
	}), script)
	if strings.Count(got, "Operation not permitted\n") != 1 || !strings.HasSuffix(got, "\nopen\nstandard\n") {
		t.Errorf("with the node: %q", got)
	}
}

// Root with ids of its own makes no node at all, and opens the one that it is given.
func TestAttackByDeviceNodesWithSubordinateIDs(t *testing.T) {
	if os.Geteuid() != 0 {
		return // an ordinary user has no subordinate ids to give
	}
	parallel(t)
	node := openable(t)
	script := fmt.Sprintf(`
		mknod /dev/x c 1 11; mknod /tmp/x c 1 3; [ -e /dev/node ] || mknod /dev/node c %d %d
		[ -e /dev/node ] && { (exec 3</dev/node) && echo open; }
		(exec 3<>/dev/null) && (exec 3</dev/urandom) && (exec 3<>/dev/ptmx) && echo standard`, node.Major, node.Minor)
	for listed, want := range map[bool]string{false: "standard\n", true: "open\nstandard\n"} {
		got := inside(t, containerGuard(t, func(c *Confinement) {
			if c.App += "-" + strconv.FormatBool(listed); listed {
				c.Nodes = []container.Node{node}
			}
		}), script)
		if got != want {
			t.Errorf("listed %t: got %q, want %q", listed, got, want)
		}
	}
}

// openable is a device of this host that is not among the standard ones and that we can open, called /dev/node.
func openable(t *testing.T) container.Node {
	t.Helper()
	for _, path := range []string{"/dev/fuse", "/dev/loop-control", "/dev/cpu_dma_latency", "/dev/hwrng", "/dev/net/tun"} {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		f.Close()
		var stat unix.Stat_t
		if err := unix.Stat(path, &stat); err != nil {
			t.Fatal(err)
		}
		return container.Node{Path: "/dev/node", Type: 'c', Major: int64(unix.Major(stat.Rdev)), Minor: int64(unix.Minor(stat.Rdev))}
	}
	need.Skip(t, "no device can be opened")
	return container.Node{}
}

// CVE-2025-31133, CVE-2025-52565, CVE-2025-52881, CVE-2026-41579: an image's /dev, /proc and links lead mounts and
// masks elsewhere.
func TestAttackByTheImagesFolders(t *testing.T) {
	parallel(t)
	canary := t.TempDir()
	if err := os.Chmod(canary, 0o777); err != nil {
		t.Fatal(err)
	}
	up := strings.Repeat("../", 20)
	for name, files := range map[string]map[string]string{
		"links":    {"dev": "->" + canary, "proc": "->" + canary, "sys": "->" + up + canary, "run": "->" + canary, "tmp": "->" + canary, "etc": "->" + canary},
		"relative": {"dev": "->" + up + canary, "proc": "->" + up + "proc", "etc/hosts": "->" + up + canary + "/hosts", "etc/resolv.conf": "->" + canary + "/resolv", "etc/hostname": "->" + up + canary + "/hostname"},
		"files":    {"dev": "x", "proc": "x", "sys": "x", "tmp": "x", "run": "x", "etc/hosts/": "", "etc/hostname/sub/": ""},
		"null":     {"dev/null": "->/proc/sys/kernel/core_pattern", "dev/pts": "->/proc/sys", "dev/console": "->/proc/sysrq-trigger", "dev/shm": "->" + up + canary, "proc/kcore": "->/etc/passwd"},
		"mounts":   {"data": "->" + up + canary, "opt/work": "->" + canary},
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			work := t.TempDir()
			if err := os.WriteFile(filepath.Join(work, "mark"), []byte("mark\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			image := newImage(t).layer(map[string]string{"usr/": "", "opt/x": "x"}).layer(files)
			g := containerGuard(t, func(c *Confinement) {
				image.use(c)
				c.Mounts = append(c.Mounts, container.Mount{From: work, To: "/data/work"}, container.Mount{From: work, To: "/opt/work/deep"})
			})
			got := inside(t, g, `
				exec 2>/dev/null
				cat /data/work/mark /opt/work/deep/mark
				[ -c /dev/null ] || echo "null is no device"
				[ "$(cat /proc/kcore /proc/keys | wc -c)" = 0 ] || echo "masked files have text"
				echo h >/proc/sysrq-trigger && echo "sysrq can be written"
				cat /proc/sys/kernel/core_pattern >/proc/sys/kernel/core_pattern && echo "core_pattern can be written"
				[ "$(stat -f -c %T /proc /dev /sys /run)" = "proc
tmpfs
sysfs
tmpfs" ] || stat -f -c %T /proc /dev /sys /run
				touch /dev/here /run/here /tmp/here
				echo end`)
			if got != "mark\nmark\nend\n" {
				t.Errorf("got %q", got)
			}
		})
	}
	t.Cleanup(func() {
		if left, err := os.ReadDir(canary); err != nil || len(left) > 0 {
			t.Errorf("written outside: %v, %v", left, err)
		}
	})
}

// What an entry of an image is called must not lead the making of its root elsewhere.
func TestAttackByTheImagesNames(t *testing.T) {
	parallel(t)
	layer := t.TempDir()
	fifo := filepath.Join(layer, "fifo")
	if err := syscall.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, e := range []container.Entry{
		{Name: "..", Dir: true, Layers: []string{layer}},
		{Name: "../x", Link: "y"},
		{Name: "a/b", Dir: true, Layers: []string{layer}},
		{Name: "", Dir: true, Layers: []string{layer}},
		{Name: "fifo", Layers: []string{fifo}},
		{Name: "file", Dir: true, Layers: []string{fifo}},
	} {
		o := containerOptions(t, func(c *Confinement) { c.Root = container.Root{Layers: []string{layer}, Entries: []container.Entry{e}} })
		g, err := Container{Tree: tree(t)}.StartGuard(t.Context(), o)
		if err == nil {
			t.Errorf("%+v was taken: %v", e, g.Close())
		}
		wantNothingOf(t, o.Confine.Dir, Remains{})
	}
	// Such a name is a name; it must not end an option of the mount.
	odd := filepath.Join(layer, "o:d,d\\")
	if err := os.MkdirAll(filepath.Join(odd, "in"), 0o755); err != nil {
		t.Fatal(err)
	}
	image := newImage(t).layer(map[string]string{"usr/": ""})
	g := containerGuard(t, func(c *Confinement) {
		image.use(c)
		c.Root.Entries = append(c.Root.Entries, container.Entry{Name: "o:d,d\\", Dir: true, Layers: []string{odd}})
	})
	if got := inside(t, g, `ls '/o:d,d\'`); got != "in\n" {
		t.Errorf("got %q", got)
	}
}

// CVE-2025-23266: the loader's variables and files of an image reach a program that runs outside.
func TestAttackByTheLoader(t *testing.T) {
	parallel(t)
	dir := t.TempDir()
	hook, out := filepath.Join(dir, "hook"), filepath.Join(dir, "out")
	script := "#!/bin/sh\ncat >/dev/null\n{ tr '\\0' '\\n' </proc/self/environ; grep evil /proc/self/maps || true; } >>" + out + "\n"
	if err := os.WriteFile(hook, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	image := newImage(t).layer(map[string]string{"usr/": "", "etc/ld.so.preload": "/evil.so\n", "evil.so": "not a library", "lib/": ""})
	g := containerGuard(t, func(c *Confinement) {
		own(t, c, dir)                                                                           // a hook of the container's is its root
		if err := errors.Join(os.WriteFile(out, nil, 0o600), os.Chmod(out, 0o666)); err != nil { //nolint:gosec // for both
			t.Fatal(err)
		}
		image.use(c)
		for _, stage := range []string{"createRuntime", "createContainer"} {
			c.Hooks = append(c.Hooks, container.Hook{Stage: stage, Path: hook, Args: []string{hook}, Env: []string{"PATH=/usr/bin:/bin", "STAGE=" + stage}})
		}
		c.Hooks = append(c.Hooks, container.Hook{Stage: "prestart", Path: hook, Args: []string{hook}})
	})
	inside(t, g, "true", func(s *Spec) { s.Env = append(s.Env, "LD_PRELOAD=/evil.so", "LD_LIBRARY_PATH=/evil") })
	got := readFile(t, out)
	for _, bad := range []string{"LD_", "evil", "HOME=", "GOCOVERDIR"} {
		if strings.Contains(got, bad) {
			t.Errorf("%s reached a hook:\n%s", bad, got)
		}
	}
	if n := strings.Count(got, "STAGE=create"); n != 2 || !strings.Contains(got, "PATH=/usr/local/sbin") {
		t.Errorf("hooks saw\n%s", got)
	}
	// The guard itself runs no loader: it is static.
	for line := range strings.Lines(readFile(t, fmt.Sprintf("/proc/%d/maps", g.PID()))) {
		if fields := strings.Fields(line); len(fields) > 5 && strings.HasPrefix(fields[5], "/") && !strings.HasPrefix(fields[5], "/memfd:") {
			t.Errorf("the guard maps %s", fields[5])
		}
	}
}

// asContainerAgent parks a container in folder args[0] and runs the rest of its arguments in it, with args[0]/work as
// /work; then it says the guard's pid and waits to be killed.
func asContainerAgent(args []string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	tree, err := cgroup.Discover(cgroup.Host{})
	if err != nil {
		return err
	}
	var hooks []container.Hook
	if stage := os.Getenv("TEST_HOOK"); stage != "" {
		hooks = append(hooks, container.Hook{Stage: stage, Path: "/bin/sh", Args: []string{"sh", "-c", "kill -KILL $PPID"}})
	}
	g, err := Container{Tree: tree}.StartGuard(context.Background(), Options{LogDir: filepath.Join(args[0], "log"), Confine: Confinement{
		Hooks: hooks,
		App:   filepath.Base(args[0]), Instance: "worker-0", Dir: filepath.Join(args[0], "container"),
		Mounts: []container.Mount{{From: exe, To: "/run/app"}, {From: filepath.Join(args[0], "work"), To: "/run/work"}},
	}})
	if err != nil {
		return err
	}
	if _, err := g.Start(Spec{Attempt: 1, Argv: args[1:], Env: os.Environ(), Dir: "/"}); err != nil {
		return err
	}
	fmt.Println(g.PID(), strings.Join(g.Remains().Cgroups, " "))
	for range g.Events() {
	}
	return nil
}

// containerAgent runs this binary as an agent whose container runs a chain of rebels that hold a fifo open.
func containerAgent(t *testing.T, dir string) (agent *exec.Cmd, guardPID int, cgroups []string, alive *held) {
	t.Helper()
	work := filepath.Join(dir, "work")
	if err := os.MkdirAll(work, 0o755); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(work, "alive")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	alive = openFifo(t, fifo)
	agent = exec.Command(self(t), "as-container-agent", dir, "/run/app", "as-rebel", "/run/work/alive", "5")
	agent.Stderr = t.Output()
	out, err := agent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = agent.Process.Kill(), agent.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(line, &guardPID); err != nil {
		t.Fatalf("agent says %q", line)
	}
	alive.wantReady(t)
	return agent, guardPID, strings.Fields(line)[1:], alive
}

func TestContainerAgentKilledLeavesNothing(t *testing.T) {
	parallel(t)
	o := containerOptions(t, nil)
	dir := filepath.Join(t.TempDir(), o.Confine.App)
	agent, pid, cgroups, held := containerAgent(t, dir)
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	held.wantEnd(t)
	awaitEnd(t, pid)
	wantNoMounts(t, dir)
	for _, path := range cgroups {
		if pids := readFile(t, path, "cgroup.procs"); pids != "" {
			t.Errorf("%s holds %q", path, pids)
		}
	}
	if err := container.Clear(t.Context(), filepath.Join(dir, "container")); err != nil {
		t.Fatal(err)
	}
	wantNothingOf(t, filepath.Join(dir, "container"), Remains{Cgroups: cgroups})
	if err := container.Clear(t.Context(), filepath.Join(dir, "container")); err != nil {
		t.Errorf("clear nothing: %v", err)
	}
}

// Killed by its own hook, an agent ends in the middle of making a container.
func TestContainerAgentKilledWhileMakingIt(t *testing.T) {
	parallel(t)
	for _, stage := range []string{"prestart", "createRuntime"} {
		t.Run(stage, func(t *testing.T) {
			o := containerOptions(t, nil)
			dir := filepath.Join(t.TempDir(), o.Confine.App)
			if err := os.MkdirAll(filepath.Join(dir, "work"), 0o755); err != nil {
				t.Fatal(err)
			}
			agent := exec.Command(self(t), "as-container-agent", dir, "/bin/true")
			agent.Env = append(os.Environ(), "TEST_HOOK="+stage)
			out, err := agent.CombinedOutput()
			if agent.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("the agent: %v\n%s", err, out)
			}
			o.Confine.Dir = filepath.Join(dir, "container")
			wantNoMounts(t, dir)
			inodes := map[string]uint64{}
			if err := json.Unmarshal([]byte(readFile(t, o.Confine.Dir, "cgroups")), &inodes); err != nil {
				t.Fatal(err)
			}
			if err := container.Clear(t.Context(), o.Confine.Dir); err != nil {
				t.Fatal(err)
			}
			wantNothingOf(t, o.Confine.Dir, Remains{Cgroups: slices.Collect(maps.Keys(inodes))})
		})
	}
}

// What an agent left whose guard could not end by itself is ended and cleared by the next.
func TestContainerIsMadeOverAnOldOne(t *testing.T) {
	parallel(t)
	o := containerOptions(t, nil)
	dir := filepath.Join(t.TempDir(), o.Confine.App)
	agent, pid, cgroups, held := containerAgent(t, dir)
	for _, p := range []int{pid, agent.Process.Pid} {
		if err := syscall.Kill(p, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	o.Confine.Dir = filepath.Join(dir, "container")
	g := startContainerGuard(t, o)
	held.wantEnd(t)
	awaitEnd(t, pid)
	if got := inside(t, g, "echo new"); got != "new\n" {
		t.Errorf("got %q", got)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	wantNothingOf(t, o.Confine.Dir, Remains{Cgroups: cgroups})
}
