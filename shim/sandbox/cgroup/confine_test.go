package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/proc"
	"github.com/muster-agent/muster/tests/need"
)

// The tests named Confine hold on every kind of host on which the tree can be used; what differs by kind is told by
// the tree that was discovered.

var instances atomic.Int32

// usable is the tree of this machine.
func usable(t *testing.T) Tree {
	t.Helper()
	tree, err := Discover(Host{})
	if err != nil {
		t.Fatal(err)
	}
	cannot := tree.Cannot()
	for _, limit := range []string{"memory_mb", "swap_mb", "vcores", "pids"} {
		if why := cannot[limit]; why != "" {
			need.Skip(t, "needs cgroups of its own: "+why)
		}
	}
	return tree
}

// made is a new cgroup that is taken away at the end.
func made(t *testing.T, tree Tree, l Limits) *Group {
	t.Helper()
	app := "cgroup-test-" + strconv.Itoa(os.Getpid())
	g, err := New(t.Context(), tree, app, "i"+strconv.Itoa(int(instances.Add(1))), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removed(t, g) })
	return g
}

func removed(t *testing.T, g *Group) {
	t.Helper()
	paths := g.Paths()
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	if err := g.Remove(ctx); err != nil {
		t.Errorf("remove: %v", err)
	}
	for _, path := range paths {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there (%v)", path, err)
		}
	}
}

func used(t *testing.T, g *Group) Usage {
	t.Helper()
	u, err := g.Usage()
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestConfineMemory(t *testing.T) {
	const limit = 32 << 20
	g := made(t, usable(t), Limits{Memory: limit, Group: true})
	g.Begin()
	p := run(t, g, "as-hog", "80")
	if status := p.end(); status.Signal() != syscall.SIGKILL {
		t.Errorf("hog ended with %v, want SIGKILL", status)
	}
	u := used(t, g)
	if u.OOMKills < 1 || u.Limit != limit || u.Peak < limit*8/10 || u.Peak > limit+limit/8 { // what the kernel charges by force may pass
		t.Errorf("%+v, want a kill at %d", u, limit)
	}
	g.Begin()
	if u := used(t, g); u.OOMKills != 0 || u.CPU > 10*time.Millisecond {
		t.Errorf("right after another begin: %+v", u)
	}
	if err := g.SetMemory(256 << 20); err != nil {
		t.Fatal(err)
	}
	p = run(t, g, "as-hog", "80")
	if status := p.end(); status.ExitStatus() != 0 {
		t.Errorf("with a larger limit the hog ended with %v", status)
	}
	if u := used(t, g); u.OOMKills != 0 || u.Limit != 256<<20 || u.Peak < 80<<20 {
		t.Errorf("with a larger limit: %+v", u)
	}
	if err := g.SetMemory(limit); err != nil {
		t.Errorf("back to the smaller one: %v", err)
	}
}

func TestConfineLoad(t *testing.T) {
	g := made(t, usable(t), Limits{Memory: 256 << 20})
	l, err := g.Load()
	if err != nil || l.Memory < 0 || l.Memory > 8<<20 || l.CPU < 0 || l.CPU > time.Second {
		t.Errorf("empty: %+v, %v", l, err)
	}
	p := run(t, g, "as-hog", "64", "stay")
	if got := p.line(); got != "held 1" {
		t.Fatalf("holder says %q", got)
	}
	if l, err = g.Load(); err != nil || l.Memory < 64<<20 || l.Memory > 256<<20 || l.CPU <= 0 {
		t.Errorf("while 64 MiB are held: %+v, %v", l, err)
	}
}

func TestConfinePids(t *testing.T) {
	g := made(t, usable(t), Limits{Pids: 32})
	g.Begin()
	p := run(t, g, "as-forks", "100")
	var n int
	var again bool
	if _, err := fmt.Sscan(p.line(), &n, &again); err != nil || !again || n == 0 || n >= 32 {
		t.Errorf("%d processes could be started (EAGAIN %v, %v), want fewer than 32", n, again, err)
	}
	if err := g.Kill(t.Context(), 0); err != nil {
		t.Error(err)
	}
	p.end()
	if u := used(t, g); u.PidsRefused < 1 {
		t.Errorf("%+v, want refused forks", u)
	}
}

func TestConfineCPU(t *testing.T) {
	g := made(t, usable(t), Limits{CPU: 1, Hard: true})
	dir, name, whole, part := g.dirs["cpu"], "cpu.cfs_quota_us", "100000", "5000"
	if g.tree.Mode == V2 {
		dir, name, whole, part = g.dirs[""], "cpu.max", "100000 100000", "5000 100000"
	}
	if got, err := dir.read(name); err != nil || got != whole {
		t.Errorf("%s is %q, %v; want %q", name, got, err, whole)
	}
	p := run(t, g, "as-spin", "60000")
	p.line()
	// A twentieth of a core is reached however busy the machine is.
	if err := dir.write(name, part); err != nil {
		t.Fatal(err)
	}
	g.Begin()
	before := time.Now()
	for u := used(t, g); u.Periods < 3 || u.Throttled <= 0; u = used(t, g) {
		if time.Since(before) > watchdog {
			t.Fatalf("%+v: never held back", u)
		}
		<-time.After(10 * time.Millisecond) // the kernel tells nobody
	}
	if err := g.Kill(t.Context(), 0); err != nil {
		t.Error(err)
	}
	p.end()
	elapsed := time.Since(before)
	u := used(t, g)
	// What was left of the whole core's period, and a slice of 5 ms of each core, may come on top.
	if most := elapsed/20 + 150*time.Millisecond; u.CPU > most {
		t.Errorf("%s on a processor in %s, want at most %s", u.CPU, elapsed, most)
	}
	if u.CPU == 0 {
		t.Errorf("%+v: it had no processor at all", u)
	}
}

func TestConfineDevices(t *testing.T) {
	tree := usable(t)
	fuse := Device{Type: 'c', Major: 10, Minor: 229, Access: "r"}
	if why := tree.Cannot()["gpus"]; why != "" {
		// Nothing is claimed, so nothing may be asked for.
		if os.Geteuid() == 0 {
			t.Errorf("root cannot list devices: %s", why)
		}
		return
	}
	for _, c := range []struct {
		name         string
		list         []Device
		major, minor string
		want         string
	}{
		{"kmsg is not in the list", []Device{}, "1", "11", "r:EPERM w:EPERM rw:EPERM"},
		{"null always is", []Device{}, "1", "3", "r:opened w:opened rw:opened"},
		{"read only", []Device{{Type: 'c', Major: 1, Minor: 11, Access: "r"}, fuse}, "1", "11", "r:opened w:EPERM rw:EPERM"},
		{"read and write", []Device{fuse, {Type: 'c', Major: 1, Minor: 11, Access: "rw"}}, "1", "11", "r:opened w:opened rw:opened"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := made(t, tree, Limits{Devices: c.list})
			p := run(t, g, "as-opener", filepath.Join(t.TempDir(), "node"), c.major, c.minor, "r", "w", "rw")
			if got := p.line(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestConfineKillsAll(t *testing.T) {
	tree := usable(t)
	g := made(t, tree, Limits{})
	crowd := run(t, g, "as-crowd", "50")
	if got := crowd.line(); got != "ready" {
		t.Fatalf("crowd says %q", got)
	}
	spared := run(t, g, "as-idle")
	spared.line()
	pids, err := g.Pids()
	if err != nil || len(pids) != 52 {
		t.Errorf("%d processes, %v; want 52", len(pids), err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	if err := g.Kill(ctx, spared.Process.Pid); err != nil {
		t.Fatal(err)
	}
	crowd.end()
	if pids, err := g.Pids(); err != nil || len(pids) != 1 || pids[0] != spared.Process.Pid {
		t.Errorf("left: %v, %v; want only %d", pids, err, spared.Process.Pid)
	}
	if err := spared.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the spared one: %v", err)
	}
	if err := g.Kill(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if status := spared.end(); status.Signal() != syscall.SIGKILL {
		t.Errorf("the last one ended with %v", status)
	}
}

func TestConfineFreeze(t *testing.T) {
	g := made(t, usable(t), Limits{})
	p := run(t, g, "as-spin", "60000")
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	if err := g.Freeze(ctx); err != nil {
		t.Fatal(err)
	}
	g.Begin()
	// Work of our own, long enough that a spinning process would have been seen.
	sum := 0
	for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); {
		sum++
	}
	t.Logf("%d rounds beside it", sum)
	if u := used(t, g); u.CPU > 5*time.Millisecond {
		t.Errorf("frozen, it used %s", u.CPU)
	}
	if err := g.Thaw(); err != nil {
		t.Fatal(err)
	}
	if err := g.Kill(ctx, 0); err != nil {
		t.Fatal(err)
	}
	p.end()
}

func TestConfineTwoInstances(t *testing.T) {
	tree := usable(t)
	a, b := made(t, tree, Limits{Memory: 32 << 20}), made(t, tree, Limits{Memory: 256 << 20})
	a.Begin()
	b.Begin()
	hog, calm := run(t, a, "as-hog", "80"), run(t, b, "as-hog", "80")
	if got := hog.end(); got.Signal() != syscall.SIGKILL {
		t.Errorf("the small one ended with %v", got)
	}
	if got := calm.end(); got.ExitStatus() != 0 {
		t.Errorf("the large one ended with %v", got)
	}
	if u, v := used(t, a), used(t, b); u.OOMKills == 0 || v.OOMKills != 0 {
		t.Errorf("%+v and %+v", u, v)
	}
}

func TestConfineStale(t *testing.T) {
	tree := usable(t)
	g := made(t, tree, Limits{Memory: 32 << 20})
	p := run(t, g, "as-idle")
	p.line()
	app, instance := filepath.Base(filepath.Dir(g.below)), filepath.Base(g.below)
	if _, err := New(t.Context(), tree, app, instance, Limits{}); !errors.Is(err, errInUse) {
		t.Errorf("made once more: %v, want ErrInUse", err)
	}
	if pids, err := g.Pids(); err != nil || len(pids) != 1 || pids[0] != p.Process.Pid {
		t.Errorf("processes %v, %v; want %d", pids, err, p.Process.Pid)
	}
	inodes := Inodes(g.Paths())
	if len(inodes) != len(g.Paths()) {
		t.Errorf("numbers %v of %v", inodes, g.Paths())
	}
	others := map[string]uint64{} // a record of an agent whose cgroup is gone, and has been made anew by another one
	for path, inode := range inodes {
		others[path] = inode - 1
	}
	if err := RemoveAt(t.Context(), g.Paths(), others); err != nil {
		t.Fatal(err)
	}
	if err := RemoveAt(t.Context(), g.Paths(), map[string]uint64{}); err != nil { // it was gone when this was recorded
		t.Fatal(err)
	}
	if pids, err := g.Pids(); err != nil || len(pids) != 1 {
		t.Errorf("a stranger's record: processes %v, %v; want one that lives", pids, err)
	}
	if err := RemoveAt(t.Context(), g.Paths(), inodes); err != nil {
		t.Fatal(err)
	}
	if status := p.end(); status.Signal() != syscall.SIGKILL {
		t.Errorf("ended with %v", status)
	}
	if err := RemoveAt(t.Context(), g.Paths(), nil); err != nil {
		t.Errorf("what is gone: %v", err)
	}
	// Somebody else may take an instance's folder away and leave those above.
	above := filepath.Dir(g.Paths()[0])
	if err := os.MkdirAll(above, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := RemoveAt(t.Context(), g.Paths(), nil); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(above); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there (%v)", above, err)
	}
}

func TestConfineReclaimMark(t *testing.T) {
	tree := usable(t)
	if tree.Mode != V2 {
		return // Missing names it
	}
	g := made(t, tree, Limits{Memory: 64 << 20, High: 48 << 20, Group: true})
	wantFiles(t, g, map[string]string{"memory.max": "67108864", "memory.high": "50331648", "memory.swap.max": "0", "memory.oom.group": "1"})
	if err := g.SetMemory(128 << 20); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, g, map[string]string{"memory.max": "134217728", "memory.high": "117440512", "memory.swap.max": "0"})
	if err := g.KillOne(); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, g, map[string]string{"memory.oom.group": "0"})
}

func wantFiles(t *testing.T, g *Group, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got, err := g.dirs[""].read(name); err != nil || got != value {
			t.Errorf("%s is %q, %v; want %q", name, got, err, value)
		}
	}
}

func TestConfineLeafIsShared(t *testing.T) {
	tree := usable(t)
	if tree.Mode != V2 {
		return // v1 has processes and cgroups in one place
	}
	for _, c := range []struct {
		name      string
		delegated bool
		want      string
	}{
		{"delegated: the unit's other processes move too", true, ""},
		{"not delegated: a stranger stays, and is in the way", false, "is not delegated to us and process"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := made(t, tree, Limits{})
			if c.delegated {
				if err := unix.Fsetxattr(int(g.Folder().Fd()), "user.delegate", []byte("1"), 0); err != nil {
					t.Fatal(err)
				}
			}
			stranger := exec.Command("sleep", "1000")
			stranger.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(g.Folder().Fd())}
			if err := stranger.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _, _ = stranger.Process.Kill(), stranger.Wait() })
			var agents []*process
			for range 4 {
				agents = append(agents, start(t, g, "as-leaf"))
			}
			for _, a := range agents { // once one has its leaf nothing can be started beside it
				a.order()
			}
			for _, a := range agents {
				said := a.line()
				if c.want != "" {
					if !strings.Contains(said, c.want) {
						t.Errorf("an agent says %q, want …%s…", said, c.want)
					}
					continue
				}
				if !strings.HasSuffix(said, g.below+"/"+leafName) {
					t.Errorf("an agent is in %q", said)
				}
			}
			if !c.delegated {
				return
			}
			wantFiles(t, g, map[string]string{"cgroup.procs": "", "cgroup.subtree_control": "cpu memory pids"})
			if pids, err := g.Pids(); err != nil || !slices.Contains(pids, stranger.Process.Pid) {
				t.Errorf("the stranger is not among %v (%v)", pids, err)
			}
		})
	}
}

func TestConfineNamesWhoIsStuck(t *testing.T) {
	tree := usable(t)
	if tree.Mode == V2 {
		return // there a frozen process can be killed
	}
	g := made(t, tree, Limits{})
	p := run(t, g, "as-idle")
	p.line()
	// Frozen from above, it cannot even die.
	above := g.own["freezer"]
	app, err := above.open(filepath.Dir(g.below))
	if err != nil {
		t.Fatal(err)
	}
	defer app.Close()
	t.Cleanup(func() { _ = app.write("freezer.state", "THAWED") })
	for began := time.Now(); ; {
		if err := app.write("freezer.state", "FROZEN"); err != nil {
			t.Fatal(err)
		}
		if state, err := app.read("freezer.state"); err != nil || state == "FROZEN" {
			break
		}
		if time.Since(began) > watchdog {
			t.Fatalf("not frozen within %s", watchdog)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err = g.Remove(ctx)
	stuck, ok := errors.AsType[*proc.StuckError](err)
	if !ok || len(stuck.Processes) != 1 {
		t.Fatalf("removed: %v", err)
	}
	if s := stuck.Processes[0]; s.PID != p.Process.Pid || s.State != 'D' || s.WaitChannel == "" {
		t.Errorf("%v, want process %d in state D with its wait channel", s, p.Process.Pid)
	}
	if err := app.write("freezer.state", "THAWED"); err != nil {
		t.Fatal(err)
	}
	p.end()
}
