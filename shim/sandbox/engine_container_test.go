package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/container"
	"github.com/muster-agent/muster/shim/sandbox/proc"
	"github.com/muster-agent/muster/tests/need"
)

func whiteout(path string) error { return unix.Mknod(path, unix.S_IFCHR|0o600, 0) }

func TestContainerHasNamespacesOfItsOwn(t *testing.T) {
	parallel(t)
	g := containerGuard(t, nil)
	got := inside(t, g, `hostname; cat /proc/1/comm; getent hosts worker-0; for n in mnt pid ipc uts net; do readlink /proc/self/ns/$n; done`)
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if len(lines) != 8 || lines[0] != "worker-0" || lines[1] != "muster-guard" || !strings.HasPrefix(lines[2], "127.0.1.1 ") {
		t.Fatalf("got %q", lines)
	}
	for i, name := range []string{"mnt", "pid", "ipc", "uts", "net"} {
		ours, err := os.Readlink("/proc/self/ns/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if same := lines[3+i] == ours; same != (name == "net") {
			t.Errorf("%s: %s inside, %s outside", name, lines[3+i], ours)
		}
	}
}

func TestContainerOfTheHostIsReadOnly(t *testing.T) {
	parallel(t)
	work := t.TempDir()
	g := containerGuard(t, func(c *Confinement) {
		c.Shm = 1 << 20
		own(t, c, work)
		c.Mounts = append(c.Mounts, container.Mount{From: work, To: work})
	})
	got := inside(t, g, `
		for d in / /usr /etc /var /home /opt /sys /proc/sys; do
			if touch $d/muster-was-here 2>/dev/null; then echo "$d can be written"; fi
		done
		for d in /tmp /var/tmp /run /dev/shm `+work+`; do touch $d/here || echo "$d cannot be written"; done
		ls -A /tmp /var/tmp
		stat -c %a /tmp /var/tmp /dev/shm
		df --output=size -B1 /dev/shm | tail -1
`)
	// Of /tmp the way to the work folder is seen, and nothing else of the host's.
	want := "/tmp:\nhere\n" + firstBelow("/tmp", work) + "\n/var/tmp:\nhere\n" + firstBelow("/var/tmp", work) + "\n1777\n1777\n1777\n1048576\n"
	if sortedLines(got) != sortedLines(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if _, err := os.Stat(filepath.Join(work, "here")); err != nil {
		t.Errorf("the work folder is not the host's: %v", err)
	}
}

func firstBelow(dir, path string) string {
	rest, ok := strings.CutPrefix(path, dir+"/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}

func sortedLines(s string) string {
	lines := strings.Fields(s)
	for i := range lines {
		for j := i; j > 0 && lines[j] < lines[j-1]; j-- {
			lines[j], lines[j-1] = lines[j-1], lines[j]
		}
	}
	return strings.Join(lines, "\n")
}

// A program that the host has in its /tmp is not there, whatever its interpreter.
func TestContainerHidesTheHostsTemporaryFiles(t *testing.T) {
	parallel(t)
	dir, err := os.MkdirTemp("/tmp", "muster-test-") //nolint:usetesting // TMPDIR may be elsewhere
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err = containerGuard(t, nil).Start(Spec{Argv: []string{program}, Dir: "/"})
	if want := "(the host has it, but /tmp in the container is the container's own: take a place outside of /tmp)"; err == nil ||
		!strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestContainerOfAnImage(t *testing.T) {
	parallel(t)
	image := newImage(t).
		layer(map[string]string{
			"opt/a": "old", "opt/gone": "x", "opt/sub/one": "1", "etc/motd": "hello", "README": "read me", "data/": "",
			"etc/hosts": "->/nowhere", "etc/resolv.conf": "->../run/nowhere", "usr/": "", "home/user/": "",
		}).
		layer(map[string]string{"opt/a": "new", "opt/gone": "whiteout", "opt/sub/two": "2", "link": "->opt/a"})
	before := listing(t, image.layers)
	g := containerGuard(t, image.use)
	got := inside(t, g, `
		cat /opt/a; echo; ls /opt /opt/sub; cat /README /link /etc/motd; echo
		grep worker-0 /etc/hosts /etc/hostname; test -s /etc/resolv.conf && echo resolver
		echo changed >/opt/a; rm -r /opt/sub /README; mkdir /opt/sub /new; echo x >/new/file; mv /etc/motd /etc/motd2; chmod 700 /data; touch /data/x
		cat /opt/a; ls /opt/sub; ls -d /README /new/file /etc/motd /etc/motd2 2>/dev/null; true`)
	want := "new\n/opt:\na\nsub\n\n/opt/sub:\none\ntwo\nread menewhello\n" +
		"/etc/hosts:127.0.1.1\tworker-0\n/etc/hostname:worker-0\nresolver\nchanged\n/etc/motd2\n/new/file\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if after := listing(t, image.layers); after != before {
		t.Errorf("the layers were changed:\n%s\nwant\n%s", after, before)
	}
}

// listing is what lies in the folders, with contents.
func listing(t *testing.T, dirs []string) string {
	t.Helper()
	var b strings.Builder
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			b.WriteString(path + " " + info.Mode().String())
			if info.Mode().IsRegular() {
				text, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				b.WriteString(" " + string(text))
			}
			b.WriteString("\n")
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// The host's root as a layer: what is written stays private, wherever the container's own folder lies.
func TestContainerOverTheHost(t *testing.T) {
	if os.Geteuid() != 0 {
		return // in his user namespace most of the host's files have no owner
	}
	parallel(t)
	home, err := os.MkdirTemp("/var/tmp", "muster-test-") //nolint:usetesting // below a folder that is a layer
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(home); err != nil {
			t.Error(err)
		}
	})
	g := containerGuard(t, func(c *Confinement) {
		c.IDs = nil // with ids of its own what root alone may read would be the container's
		c.Dir, c.Root = filepath.Join(home, "container"), container.Root{Layers: []string{"/"}}
		for _, name := range []string{"etc", "usr", "var", "opt"} {
			c.Root.Entries = append(c.Root.Entries, container.Entry{Name: name, Dir: true, Layers: []string{"/" + name}})
		}
		for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
			c.Root.Entries = append(c.Root.Entries, container.Entry{Name: name, Link: "usr/" + name})
		}
	})
	got := inside(t, g, `echo x >/etc/muster-test; echo x >/usr/muster-test; rm /etc/passwd; ls /etc/muster-test /usr/muster-test; touch /var/muster-test 2>/dev/null || echo var is read-only
		ls -A /var/tmp/muster-test-*/container`)
	if got != "/etc/muster-test\n/usr/muster-test\nvar is read-only\n" {
		t.Errorf("got %q", got)
	}
	for _, path := range []string{"/etc/muster-test", "/usr/muster-test"} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is on the host", path)
		}
	}
	if _, err := os.Stat("/etc/passwd"); err != nil {
		t.Error(err)
	}
}

func TestContainerOfManyLayers(t *testing.T) {
	parallel(t)
	image := newImage(t).layer(map[string]string{"usr/": ""})
	for range 100 {
		image.layer(map[string]string{"opt/" + t.Name() + "-" + string(rune('a'+len(image.layers)%26)) + strings.Repeat("x", 50): "x", "etc/": ""})
	}
	g := containerGuard(t, image.use)
	if got := inside(t, g, "ls /opt | wc -l"); got != "26\n" {
		t.Errorf("%s of 26 files", got)
	}
}

func TestContainerExitIsWholeAndRestartsInPlace(t *testing.T) {
	parallel(t)
	g := containerGuard(t, nil)
	for attempt, c := range []struct {
		script  string
		code    any
		signal  int
		message string
	}{
		{"exit 0", 0, 0, "exit code 0"},
		{"exit 137", 137, 0, "exit code 137"},
		{"kill -KILL $$", nil, 9, "ended by SIGKILL"},
		{"kill -TERM $$", nil, 15, "ended by SIGTERM"},
		{"(trap '' TERM HUP; exec setsid sleep 1000) & exit 7", 7, 0, "exit code 7"},
		{"/run/app as-zombies 30", 3, 0, "exit code 3"},
	} {
		start(t, g, Spec{Attempt: attempt, Argv: []string{"sh", "-c", c.script}, Dir: "/"})
		x := await[Exited](t, g)
		if deref(x.Exit.Code) != c.code || x.Exit.Signal != c.signal || x.Exit.Message != c.message || x.Attempt != attempt {
			t.Errorf("%s: %+v, code %v", c.script, x, deref(x.Exit.Code))
		}
		await[Empty](t, g)
		if left := below(t, g.PID()); len(left) > 0 {
			t.Errorf("%s: left %+v", c.script, left)
		}
	}
}

func TestContainerKillReachesEverySession(t *testing.T) {
	parallel(t)
	crowd := 50
	if os.Getenv("MUSTER_MACHINE") != "" { // an exec takes a second there
		crowd = 10
	}
	g := containerGuard(t, nil)
	start(t, g, Spec{Attempt: 1, Dir: "/", Env: append(os.Environ(), fmt.Sprint("CROWD=", crowd)), Argv: []string{"sh", "-c", `
		i=0; while [ $i -lt $CROWD ]; do
			if [ $((i % 2)) = 0 ]; then setsid sh -c 'trap "" TERM HUP; echo deaf; while :; do sleep 1000; done' &
			else sh -c 'trap "" TERM; echo deaf; while :; do sleep 1000; done' & fi
			i=$((i + 1))
		done
		wait`}})
	waitForLines(t, filepath.Join(g.options.LogDir, "stdout.log"), "deaf", crowd)
	if n := len(below(t, g.PID())); n <= crowd { // each may not have its sleep yet
		t.Errorf("%d processes, want more than %d", n, crowd)
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	if x := await[Exited](t, g); x.Exit.Signal != 9 {
		t.Errorf("exited %+v", x)
	}
	await[Empty](t, g)
	if left := below(t, g.PID()); len(left) > 0 {
		t.Errorf("left %+v", left)
	}
}

func TestContainerStopIsForTheMainProcess(t *testing.T) {
	parallel(t)
	g := containerGuard(t, nil)
	start(t, g, Spec{Attempt: 1, Dir: "/", Argv: []string{"sh", "-c", `trap 'echo term; exit 5' TERM; echo ready; while :; do sleep 0.01; done`}})
	waitForLines(t, filepath.Join(g.options.LogDir, "stdout.log"), "ready", 1)
	if err := g.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if x := await[Exited](t, g); deref(x.Exit.Code) != 5 {
		t.Errorf("exited %+v", x)
	}
	await[Empty](t, g)
}

func TestContainerThatCannotBeMadeLeavesNothing(t *testing.T) {
	parallel(t)
	for name, c := range map[string]struct {
		change func(*Confinement)
		want   string
	}{
		"a mount in a read-only folder": {
			func(c *Confinement) {
				c.Mounts = append(c.Mounts, container.Mount{From: t.TempDir(), To: "/usr/no/such"})
			},
			"(the folder is not there in the host's root, which is read-only)",
		},
		"a mount in proc": {
			func(c *Confinement) { c.Mounts = append(c.Mounts, container.Mount{From: t.TempDir(), To: "/proc/sys"}) },
			"because it is inside /proc",
		},
		"a mount around the container's own folder": {
			func(c *Confinement) {
				c.Mounts = append(c.Mounts, container.Mount{From: filepath.Dir(c.Dir), To: "/run/x"})
			},
			"the container's own folder",
		},
		"a mount of nothing": {
			func(c *Confinement) { c.Mounts = append(c.Mounts, container.Mount{From: "/no/such", To: "/run/x"}) },
			"mount /no/such: file does not exist",
		},
		"a node outside of dev": {
			func(c *Confinement) { c.Nodes = []container.Node{{Path: "/tmp/x", Type: 'c'}} }, "want a path below /dev",
		},
		"a hook that fails": {
			func(c *Confinement) {
				c.Hooks = []container.Hook{{Stage: "createRuntime", Path: "/bin/sh", Args: []string{"sh", "-c", "echo no device >&2; exit 3"}}}
			},
			"no device",
		},
		"no such hook": {
			func(c *Confinement) { c.Hooks = []container.Hook{{Stage: "prestart", Path: "/no/such/hook"}} }, "/no/such/hook",
		},
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			o := containerOptions(t, c.change)
			g, err := Container{Tree: tree(t)}.StartGuard(t.Context(), o)
			if err == nil {
				t.Fatalf("it was made: %v", g.Close())
			}
			if !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "start guard: make container: ") {
				t.Errorf("%v\nwant %q", err, c.want)
			}
			left, err := filepath.Glob("/sys/fs/cgroup/*/muster/" + o.Confine.App)
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range tree(t).Path(o.Confine.App, o.Confine.Instance) {
				left = append(left, filepath.Dir(path))
			}
			for i := range left {
				left[i] += "/x"
			}
			wantNothingOf(t, o.Confine.Dir, Remains{Cgroups: left})
		})
	}
}

// The guard's numbers are those of the container's pid namespace; what is told are the host's.
func TestContainerProcessIsFoundOutside(t *testing.T) {
	parallel(t)
	g := containerGuard(t, nil)
	pid := start(t, g, Spec{Attempt: 1, Argv: []string{"sleep", "1000"}, Dir: "/"})
	if strings.TrimSpace(readFile(t, fmt.Sprintf("/proc/%d/comm", pid))) != "sleep" || !g.Holds(pid) {
		t.Errorf("process %d is not the one that was started", pid)
	}
	if none := (proc.Host{}).OuterPID(g.PID(), 30000); none != 0 {
		t.Errorf("process 30000 is %d", none)
	}
}

func waitForLines(t *testing.T, path, line string, n int) {
	t.Helper()
	waitForLine(t, path, line)
	for strings.Count(readFile(t, path), line+"\n") < n {
		select {
		case <-t.Context().Done():
			t.Fatal("test is over")
		default:
		}
	}
}

// All of this holds for an ordinary user too, in a user namespace. There is no cgroup for him here.
func TestContainerOfAnOrdinaryUser(t *testing.T) {
	if os.Getenv("MUSTER_MACHINE") != "" {
		return // all of them run as an ordinary user there too
	}
	need.Root(t)
	parallel(t)
	user := nobody(t)
	dir := t.TempDir()
	for path := dir; path != "/tmp" && path != "/"; path = filepath.Dir(path) {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program, home := filepath.Join(dir, "sandbox.test"), filepath.Join(dir, "home")
	// Copied by another process: a child that this one forks meanwhile would have the file open for writing (ETXTBSY).
	if out, err := exec.CommandContext(t.Context(), "cp", self(t), program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := errors.Join(os.Chmod(program, 0o755), os.Mkdir(home, 0o755), os.Chown(home, int(user.UID), int(user.GID))); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^(TestContainer|TestAttack)", "-test.skip=OrdinaryUser", "-test.v")
	cmd.Dir, cmd.Env = home, append(os.Environ(), "TMPDIR="+home, "HOME="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user.UID, Gid: user.GID}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestContainerHasNamespacesOfItsOwn") {
		t.Errorf("%v\n%s", err, out)
	}
}
