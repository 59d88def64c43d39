package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/cgroup"
	"github.com/muster-agent/muster/shim/sandbox/container"
	"github.com/muster-agent/muster/shim/sandbox/guard"
	"github.com/muster-agent/muster/tests/need"
)

// What every engine with a cgroup promises, on every kind of host. What differs by kind is told by the tree that was
// discovered.

func init() {
	roles["as-confined-agent"] = asConfinedAgent
	roles["as-hog"] = asHog
	roles["as-holder"] = asHolder
	roles["as-spin"] = asSpin
	roles["as-forks"] = asForks
	roles["as-crowd"] = asCrowd
	roles["as-opener"] = asOpener
}

// engines are those that hold limits in a cgroup, as far as this host permits them.
func engines(t *testing.T) []Engine {
	t.Helper()
	if p, err := guard.Open(); err != nil {
		need.Skip(t, err.Error())
	} else {
		p.Close()
	}
	tree := tree(t)
	cannot := tree.Cannot()
	for _, limit := range []string{"memory_mb", "swap_mb", "vcores", "pids"} {
		if why := cannot[limit]; why != "" {
			need.Skip(t, "needs cgroups of its own: "+why)
		}
	}
	if ok, why := probed(); !ok {
		need.Skip(t, "no container can be made here: "+why)
	}
	return []Engine{Cgroup{Tree: tree}, Container{Tree: tree}}
}

// rig is an engine at work.
type rig struct {
	*Guard
	t   *testing.T
	app string // this binary, as the engine's processes find it
	// together says that one who is killed for memory takes all others along, but for the guard: one that is neither
	// outside nor spared by the kernel must not be among them.
	together bool
}

// confined runs a test with each engine.
func confined(t *testing.T, l cgroup.Limits, test func(t *testing.T, r *rig)) {
	t.Helper()
	for _, e := range engines(t) {
		t.Run(e.Name(), func(t *testing.T) { test(t, newRig(t, e, "worker-0", l)) })
	}
}

// newRig parks a guard, and proves at the end that nothing is left of its cgroup.
func newRig(t *testing.T, e Engine, instance string, l cgroup.Limits) *rig {
	t.Helper()
	host := tree(t)
	r := &rig{t: t, app: self(t), together: host.Mode == cgroup.V2 && (host.Protects || e.Name() == nameCgroup)}
	o := rigOptions(t.TempDir(), testApp(t), instance, r.app, l)
	o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	if l.Devices != nil { // the test makes nodes of devices, to see which can be opened
		o.Caps = new(DefaultCaps | 1<<unix.CAP_MKNOD)
	}
	if len(o.Confine.Mounts) > 0 && e.Name() == nameContainer {
		r.app = o.Confine.Mounts[0].To
	}
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	g, err := e.StartGuard(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	r.Guard = g
	t.Cleanup(func() {
		left := g.Remains()
		if len(left.Cgroups) == 0 {
			t.Error("no cgroup would be in the record")
		}
		if err := g.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		wantNoneOf(t, left)
	})
	return r
}

func rigOptions(dir, app, instance, self string, l cgroup.Limits) Options {
	return Options{LogDir: filepath.Join(dir, "log"), Confine: Confinement{
		App: app, Instance: instance, Hostname: instance, Dir: filepath.Join(dir, "container"), Limits: l,
		Mounts: []container.Mount{{From: self, To: "/run/app", ReadOnly: true}},
	}}
}

func wantNoneOf(t *testing.T, left Remains) {
	t.Helper()
	for _, path := range append(left.Cgroups, left.Dirs...) {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there (%v)", path, err)
		}
	}
}

// ended runs a role to its end.
func (r *rig) ended(attempt int, argv ...string) Exit {
	r.t.Helper()
	start(r.t, r.Guard, Spec{Attempt: attempt, Argv: argv, Dir: "/"})
	x := await[Exited](r.t, r.Guard)
	await[Empty](r.t, r.Guard)
	return x.Exit
}

func (r *rig) stdout() string { return readFile(r.t, r.options.LogDir, "stdout.log") }

const mebibyte = 1 << 20

// asHog touches args[0] MiB.
func asHog(args []string) error {
	mib, _ := strconv.Atoi(args[0])
	held := make([]byte, mib*mebibyte)
	for i := 0; i < len(held); i += 4096 {
		held[i] = 1
	}
	fmt.Println("held", held[0])
	return nil
}

// asHolder holds args[0] MiB until it is killed.
func asHolder(args []string) error {
	mib, _ := strconv.Atoi(args[0])
	held := make([]byte, mib*mebibyte)
	for { // a program all of whose goroutines wait for each other is ended by Go
		for i := 0; i < len(held); i += 4096 {
			held[i]++
		}
		if _, err := unix.Ppoll(nil, nil, nil); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func TestConfineMemory(t *testing.T) {
	const limit = 32 * mebibyte
	confined(t, cgroup.Limits{Memory: limit, Group: true}, func(t *testing.T, r *rig) {
		x := r.ended(1, r.app, "as-hog", "80")
		if u := x.Usage; x.Signal != 9 || u.OOMKills < 1 || u.Limit != limit || u.Peak < limit*8/10 || u.Peak > limit+mebibyte {
			t.Errorf("a hog: signal %d, %+v; want a kill at %d", x.Signal, u, limit)
		}
		x = r.ended(2, r.app, "as-state")
		if x.Usage.OOMKills != 0 || deref(x.Code) != 0 {
			t.Errorf("the next start: %+v, code %v", x, deref(x.Code))
		}
		if out := r.stdout(); !strings.Contains(out, "adj 0\n") {
			t.Errorf("the app has the guard's oom score: %s", out)
		}
		// The hog is not the main process.
		x = r.ended(3, "sh", "-c", r.app+" as-hog 80; exit 7")
		if x.Usage.OOMKills < 1 {
			t.Errorf("a child that hogs: %+v", x.Usage)
		}
		if r.together != (x.Signal == 9) || r.together == (deref(x.Code) == 7) {
			t.Errorf("a child that hogs: signal %d, code %v; killed together: %v", x.Signal, deref(x.Code), r.together)
		}
		if err := r.Grow(256 * mebibyte); err != nil {
			t.Fatal(err)
		}
		x = r.ended(4, r.app, "as-hog", "80")
		if u := x.Usage; deref(x.Code) != 0 || u.OOMKills != 0 || u.Limit != 256*mebibyte || u.Peak < 80*mebibyte {
			t.Errorf("with a larger limit: code %v, %+v", deref(x.Code), u)
		}
	})
}

// asForks starts processes until it may not, and says how many it could and whether it was told EAGAIN.
func asForks(args []string) error {
	most, _ := strconv.Atoi(args[0])
	for n := range most {
		if err := forkIdle(false); err != 0 {
			fmt.Println(n, err == syscall.EAGAIN)
			return nil
		}
	}
	fmt.Println(most, false)
	return nil
}

// forkIdle makes a process that waits for ever, at the price of a fork: in an emulated machine an exec takes a second.
// The child makes system calls and nothing else, so it does not miss the threads that it does not have.
func forkIdle(session bool) syscall.Errno {
	child, _, err := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if child == 0 && err == 0 {
		if session {
			_, _, _ = syscall.RawSyscall(syscall.SYS_SETSID, 0, 0, 0)
		}
		for {
			_, _, _ = syscall.RawSyscall6(syscall.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
		}
	}
	return err
}

func TestConfinePids(t *testing.T) {
	confined(t, cgroup.Limits{Pids: 32}, func(t *testing.T, r *rig) {
		x := r.ended(1, r.app, "as-forks", "100")
		var n int
		var again bool
		if _, err := fmt.Sscan(r.stdout(), &n, &again); err != nil || !again || n < 1 || n > 31 {
			t.Errorf("%d processes could be started (EAGAIN %v, %v), want fewer than 32", n, again, err)
		}
		if x.Usage.PidsRefused < 1 || deref(x.Code) != 0 {
			t.Errorf("%+v, code %v; want refused forks", x.Usage, deref(x.Code))
		}
	})
}

// asSpin says that it begins, and keeps four threads busy for args[0] ms.
func asSpin(args []string) error {
	ms, _ := strconv.Atoi(args[0])
	fmt.Println("ready")
	end := time.Now().Add(time.Duration(ms) * time.Millisecond)
	done := make(chan bool)
	for range 4 {
		go func() {
			for time.Now().Before(end) {
			}
			done <- true
		}()
	}
	for range 4 {
		<-done
	}
	return nil
}

func TestConfineCPU(t *testing.T) {
	confined(t, cgroup.Limits{CPU: 1, Hard: true}, func(t *testing.T, r *rig) {
		begun := time.Now()
		start(t, r.Guard, Spec{Attempt: 1, Argv: []string{r.app, "as-spin", "60000"}, Dir: "/"})
		waitForLine(t, filepath.Join(r.options.LogDir, "stdout.log"), "ready")
		// A twentieth of a core is reached however busy the machine is.
		quotaOf(t, r.Remains(), 5)
		tightened := time.Now()
		awaitThrottled(t, r.Remains())
		if err := r.Kill(); err != nil {
			t.Error(err)
		}
		u := await[Exited](t, r.Guard).Exit.Usage
		// What was left of the whole core's period, and a slice of 5 ms of each core, may come on top.
		if most := tightened.Sub(begun) + time.Since(tightened)/20 + 150*time.Millisecond; u.CPU > most {
			t.Errorf("%s on a processor, want at most %s", u.CPU, most)
		}
		if u.CPU == 0 || u.Periods < 1 || u.Throttled <= 0 {
			t.Errorf("%+v: never held back", u)
		}
	})
}

// awaitThrottled waits until a quota has held processes back some more: on busy cores they have their part of one late.
func awaitThrottled(t *testing.T, left Remains) {
	t.Helper()
	throttled := func() int {
		for _, dir := range left.Cgroups {
			var n int
			text, err := os.ReadFile(filepath.Join(dir, "cpu.stat"))
			if _, after, ok := strings.Cut(string(text), "nr_throttled "); err == nil && ok {
				if _, err := fmt.Sscan(after, &n); err != nil {
					t.Fatal(err)
				}
				return n
			}
		}
		t.Fatalf("nothing is counted in %v", left.Cgroups)
		return 0
	}
	first := throttled()
	for began := time.Now(); throttled() < first+3; {
		if time.Since(began) > watchdog {
			t.Fatalf("not held back within %s", watchdog)
		}
		<-time.After(10 * time.Millisecond) // the kernel tells nobody
	}
}

// quotaOf makes sure of a quota of one core, then makes it a per cent of one.
func quotaOf(t *testing.T, left Remains, percent int) {
	t.Helper()
	for _, dir := range left.Cgroups {
		for name, text := range map[string]string{"cpu.cfs_quota_us": "%d", "cpu.max": "%d 100000"} {
			path := filepath.Join(dir, name)
			b, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if got, want := strings.TrimSpace(string(b)), fmt.Sprintf(text, 100_000); err != nil || got != want {
				t.Errorf("%s is %q, %v; want %q", path, got, err, want)
			}
			if err := os.WriteFile(path, fmt.Appendf(nil, text, percent*1000), 0); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no quota in %v", left.Cgroups)
}

// asOpener makes the node args[0] (c MAJOR MINOR) and says how opening it went.
func asOpener(args []string) error {
	major, _ := strconv.Atoi(args[1])
	minor, _ := strconv.Atoi(args[2])
	if err := unix.Mknod(args[0], unix.S_IFCHR|0o600, int(unix.Mkdev(uint32(major), uint32(minor)))); err != nil {
		return fmt.Errorf("mknod: %w", err)
	}
	for _, flag := range []int{os.O_RDONLY, os.O_WRONLY, os.O_RDWR} {
		f, err := os.OpenFile(args[0], flag, 0)
		switch {
		case errors.Is(err, syscall.EPERM):
			fmt.Print("EPERM ")
		case err != nil:
			fmt.Print(err, " ")
		default:
			fmt.Print("opened ")
			_ = f.Close()
		}
	}
	return os.Remove(args[0])
}

func TestConfineDevices(t *testing.T) {
	list := []cgroup.Device{{Type: 'c', Major: 1, Minor: 11, Access: "w"}} // /dev/kmsg, which takes no capability to write
	confined(t, cgroup.Limits{Devices: list}, func(t *testing.T, r *rig) {
		if tree(t).NoDevices != "" {
			return // an ordinary user can make no node, and nothing is claimed: TestConfineNamesWhatItCannot
		}
		for attempt, c := range []struct{ name, major, minor, want string }{
			{"fuse is not in the list", "10", "229", "EPERM EPERM EPERM "},
			{"null is always", "1", "3", "opened opened opened "},
			{"what is granted to write", "1", "11", "EPERM opened EPERM "},
		} {
			node := filepath.Join(t.TempDir(), "node")
			if strings.HasPrefix(r.app, "/run/") { // in a container the one folder without nodev
				node = "/dev/muster-node"
			}
			before := 0
			if b, err := os.ReadFile(filepath.Join(r.options.LogDir, "stdout.log")); err == nil {
				before = len(b)
			}
			x := r.ended(attempt, r.app, "as-opener", node, c.major, c.minor)
			if got := r.stdout()[before:]; got != c.want || deref(x.Code) != 0 {
				t.Errorf("%s: %q (code %v), want %q", c.name, got, deref(x.Code), c.want)
			}
		}
	})
}

// asCrowd makes args[0] processes, every second one in a session of its own, all deaf to TERM.
func asCrowd(args []string) error {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
	n, _ := strconv.Atoi(args[0])
	for i := range n {
		if err := forkIdle(i%2 == 0); err != 0 {
			return err
		}
	}
	fmt.Println("ready")
	for { // a program all of whose goroutines wait for each other is ended by Go
		if _, err := unix.Ppoll(nil, nil, nil); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func TestConfineKillsAll(t *testing.T) {
	confined(t, cgroup.Limits{}, func(t *testing.T, r *rig) {
		for attempt := range 2 {
			start(t, r.Guard, Spec{Attempt: attempt, Argv: []string{r.app, "as-crowd", "50"}, Dir: "/"})
			waitForLines(t, filepath.Join(r.options.LogDir, "stdout.log"), "ready", attempt+1)
			if n := members(t, r.Remains()); n < 51 {
				t.Errorf("%d processes in the cgroup, want 51 or more", n)
			}
			if attempt == 1 {
				break // Close has the rest
			}
			if err := r.Kill(); err != nil {
				t.Fatal(err)
			}
			if x := await[Exited](t, r.Guard); x.Exit.Signal != 9 {
				t.Errorf("%+v", x)
			}
			await[Empty](t, r.Guard)
			if n := members(t, r.Remains()); n > 1 { // the guard, unless it is outside
				t.Errorf("%d processes are left", n)
			}
		}
	})
}

// members counts the processes of the cgroups in a record, in the fullest.
func members(t *testing.T, left Remains) int {
	t.Helper()
	most := 0
	for _, dir := range left.Cgroups {
		most = max(most, len(strings.Fields(readFile(t, dir, "cgroup.procs"))))
	}
	return most
}

func TestConfineExitIsWhole(t *testing.T) {
	confined(t, cgroup.Limits{}, func(t *testing.T, r *rig) {
		for attempt, c := range []struct {
			argv   []string
			code   any
			signal int
		}{
			{[]string{"sh", "-c", "exit 0"}, 0, 0},
			{[]string{"sh", "-c", "exit 137"}, 137, 0},
			{[]string{"sh", "-c", "kill -KILL $$"}, nil, 9},
			{[]string{r.app, "as-zombies", "20"}, 3, 0},
		} {
			if x := r.ended(attempt, c.argv...); deref(x.Code) != c.code || x.Signal != c.signal || x.Usage.OOMKills != 0 {
				t.Errorf("%v: code %v, signal %d, %+v", c.argv, deref(x.Code), x.Signal, x.Usage)
			}
		}
	})
}

func TestConfineTwoInstances(t *testing.T) {
	for _, e := range engines(t) {
		t.Run(e.Name(), func(t *testing.T) {
			small := newRig(t, e, "worker-0", cgroup.Limits{Memory: 32 * mebibyte})
			large := newRig(t, e, "worker-1", cgroup.Limits{Memory: 256 * mebibyte})
			for _, r := range []*rig{small, large} {
				start(t, r.Guard, Spec{Attempt: 1, Argv: []string{r.app, "as-hog", "80"}, Dir: "/"})
			}
			a, b := await[Exited](t, small.Guard), await[Exited](t, large.Guard)
			if a.Exit.Usage.OOMKills < 1 || b.Exit.Usage.OOMKills != 0 || deref(b.Exit.Code) != 0 {
				t.Errorf("the small one %+v, the large one %+v", a.Exit, b.Exit)
			}
		})
	}
}

// asConfinedAgent parks a guard of the engine args[0] with files in args[1], starts a crowd in it, says what it would
// record, and waits to be killed.
func asConfinedAgent(args []string) error {
	tree, err := cgroup.Discover(cgroup.Host{})
	if err != nil {
		return err
	}
	var e Engine = Cgroup{Tree: tree}
	app, err := os.Executable()
	if err != nil {
		return err
	}
	o := rigOptions(args[1], args[2], "worker-0", app, cgroup.Limits{Memory: 256 * mebibyte})
	if args[0] == nameContainer {
		e, app = Container{Tree: tree}, o.Confine.Mounts[0].To
	}
	g, err := e.StartGuard(context.Background(), o)
	if err != nil {
		return err
	}
	if _, err := g.Start(Spec{Attempt: 1, Argv: []string{app, "as-crowd", "50"}, Env: os.Environ(), Dir: "/"}); err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(g.Remains()); err != nil {
		return err
	}
	fmt.Println(g.PID())
	for range g.Events() {
	}
	return nil
}

func TestConfineAgentKilled(t *testing.T) {
	for _, e := range engines(t) {
		t.Run(e.Name(), func(t *testing.T) {
			dir := t.TempDir()
			agent := exec.Command(self(t), "as-confined-agent", e.Name(), dir, testApp(t))
			agent.Stderr = t.Output()
			out, err := agent.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := agent.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _, _ = agent.Process.Kill(), agent.Wait() })
			said := bufio.NewReader(out)
			line, err := said.ReadBytes('\n')
			if err != nil {
				t.Fatal(err)
			}
			var left Remains
			if err := json.Unmarshal(line, &left); err != nil || len(left.Cgroups) == 0 {
				t.Fatalf("the agent says %q", line)
			}
			var guardPID int
			if _, err := fmt.Fscan(said, &guardPID); err != nil {
				t.Fatal(err)
			}
			waitForLine(t, filepath.Join(dir, "log", "stdout.log"), "ready")
			if err := agent.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			awaitEnd(t, guardPID)
			if n := members(t, left); n != 0 {
				t.Errorf("%d processes outlive their agent and its guard", n)
			}
			ctx, cancel := context.WithTimeout(t.Context(), watchdog)
			defer cancel()
			if err := Clear(ctx, left); err != nil {
				t.Fatal(err)
			}
			wantNoneOf(t, left)
		})
	}
}

func TestConfineNamesWhatItCannot(t *testing.T) {
	for _, c := range []struct {
		name string
		tree cgroup.Tree
		want string
	}{
		{"no cgroups", cgroup.Tree{NoDevices: "none"}, "cpu_hard gpus high_mb memory_mb pids shm_mb swap_mb vcores"},
		{"ordinary user with a cgroup", cgroup.Tree{
			Controllers: map[string]cgroup.Controller{"memory": {}, "cpu": {}, "pids": {}}, Swap: true, NoDevices: "not permitted",
		}, "gpus high_mb shm_mb"},
	} {
		cannot := Cgroup{Tree: c.tree}.Cannot()
		if got := strings.Join(slices.Sorted(maps.Keys(cannot)), " "); got != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
	if cannot := (Cgroup{Tree: tree(t)}).Cannot(); (cannot["gpus"] == "") != (os.Geteuid() == 0) {
		t.Errorf("on this host: %v", cannot)
	}
}
