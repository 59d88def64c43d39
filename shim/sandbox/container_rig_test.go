package sandbox

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/muster-agent/muster/shim/sandbox/cgroup"
	"github.com/muster-agent/muster/shim/sandbox/container"
	"github.com/muster-agent/muster/shim/sandbox/subids"
	"github.com/muster-agent/muster/tests/need"
)

// parallel lets a test run beside others, but for the emulated machine, where two make each other's patience end.
func parallel(t *testing.T) {
	t.Helper()
	if os.Getenv("MUSTER_MACHINE") == "" {
		t.Parallel()
	}
}

// containerGuard starts a guard in a container that change may alter, and checks at the end that no process is left.
func containerGuard(t *testing.T, change func(*Confinement)) *Guard {
	t.Helper()
	o := containerOptions(t, change)
	g := startContainerGuard(t, o)
	skeleton := skeleton(t, g.PID())
	t.Cleanup(func() {
		left := g.Remains()
		if err := g.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		wantNothingOf(t, o.Confine.Dir, left)
		wantNothingOf(t, filepath.Dir(skeleton), Remains{})
	})
	return g
}

// skeleton is the folder of the host that is a container's root.
func skeleton(t *testing.T, pid int) string {
	t.Helper()
	for line := range strings.Lines(readFile(t, fmt.Sprintf("/proc/%d/mountinfo", pid))) {
		fields := strings.Fields(line)
		if fields[4] != "/" {
			continue
		}
		// On a filesystem of its own the path begins where that is mounted.
		for _, base := range []string{"", "/run", os.Getenv("XDG_RUNTIME_DIR"), "/dev/shm"} {
			if _, err := os.Stat(base + fields[3]); err == nil {
				return base + fields[3]
			}
		}
	}
	t.Fatal("no root is mounted")
	return ""
}

// The answer is the same for all tests of a run.
var probed = sync.OnceValues(func() (bool, string) { return container.Probe(context.Background()) })

func containerOptions(t *testing.T, change func(*Confinement)) Options {
	t.Helper()
	if ok, why := probed(); !ok {
		need.Skip(t, "no container can be made here: "+why)
	}
	o := Options{
		LogDir: filepath.Join(t.TempDir(), "log"),
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Confine: Confinement{
			App: testApp(t), Instance: "worker-0", Hostname: "worker-0", Dir: filepath.Join(t.TempDir(), "container"),
			Mounts: []container.Mount{{From: self(t), To: "/run/app", ReadOnly: true}},
		},
	}
	o.Confine.IDs = testIDs(t)
	if o.Confine.IDs != nil {
		root, _ := o.Confine.IDs.UID(0)
		reachable(t, o.Confine.Dir, o.LogDir)
		if err := errors.Join(os.MkdirAll(o.LogDir, 0o755), os.Chown(o.LogDir, root, root)); err != nil {
			t.Fatal(err)
		}
	}
	if change != nil {
		change(&o.Confine)
	}
	return o
}

// testIDs are subordinate ids for what a test that is root confines; nil: it is not.
func testIDs(t testing.TB) *subids.Map {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	pool, err := subids.HostPool()
	if err != nil {
		t.Fatal(err)
	}
	return subids.New(subids.Block{UID: pool.UIDs.First, GID: pool.GIDs.First}, nil, nil)
}

// own makes a folder of the host the confined root's.
func own(t testing.TB, c *Confinement, dir string) {
	t.Helper()
	if c.IDs == nil {
		return
	}
	reachable(t, dir+"/")
	uid, _ := c.IDs.UID(0)
	gid, _ := c.IDs.GID(0)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
}

// reachable lets others pass through the folders that a test has for itself.
func reachable(t testing.TB, paths ...string) {
	t.Helper()
	for _, path := range paths {
		for dir := filepath.Dir(path); strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
			if info, err := os.Stat(dir); err == nil {
				if err := os.Chmod(dir, info.Mode().Perm()|0o011); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func startContainerGuard(t *testing.T, o Options) *Guard {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	g, err := Container{Tree: tree(t)}.StartGuard(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func tree(t testing.TB) cgroup.Tree {
	t.Helper()
	tree, err := cgroup.Discover(cgroup.Host{})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// testApp is an app id that no other test has at the same time.
func testApp(t *testing.T) string {
	h := fnv.New32()
	fmt.Fprint(h, t.Name())
	return fmt.Sprintf("sandboxtest-%d-%x", os.Getpid(), h.Sum32())
}

// wantNothingOf looks for what a container may leave on the host.
func wantNothingOf(t *testing.T, dir string, left Remains) {
	t.Helper()
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is there: %v", dir, err)
	}
	for _, path := range left.Cgroups {
		if _, err := os.Lstat(filepath.Dir(path)); err == nil { // muster/<app>, which is the test's alone
			t.Errorf("cgroup of %s is there", path)
		}
	}
	wantNoMounts(t, dir)
}

// wantNoMounts wants the host's mount namespace to know nothing of a container's folder.
func wantNoMounts(t *testing.T, dir string) {
	t.Helper()
	for line := range strings.Lines(readFile(t, "/proc/self/mountinfo")) {
		if strings.Contains(line, dir) {
			t.Errorf("mounted on the host: %s", line)
		}
	}
}

// inside runs a script of the shell under g and returns what it wrote to stdout; what it wrote to stderr is logged.
func inside(t *testing.T, g *Guard, script string, change ...func(*Spec)) string {
	t.Helper()
	before := len(readIfThere(t, g, "stdout.log"))
	s := Spec{Attempt: 1, Argv: []string{"/bin/sh", "-c", script}, Dir: "/", Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}}
	for _, f := range change {
		f(&s)
	}
	start(t, g, s)
	x := await[Exited](t, g)
	await[Empty](t, g)
	out := readIfThere(t, g, "stdout.log")[before:]
	if code := deref(x.Exit.Code); code != 0 {
		t.Errorf("%s\nexit %v, stdout:\n%s\nstderr:\n%s", script, x.Exit.Message, out, readIfThere(t, g, "stderr.log"))
	}
	return out
}

func readIfThere(t *testing.T, g *Guard, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(g.options.LogDir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // nothing was started yet
		t.Fatal(err)
	}
	return string(b)
}

// testImage is an image of hand-made layers, with the host's /usr for a userland.
type testImage struct {
	t      *testing.T
	layers []string
}

func newImage(t *testing.T) *testImage { return &testImage{t: t} }

// layer adds a layer on top. A path that ends with a slash is a folder, a text that begins with -> a link, one that is
// "whiteout" hides what lies below.
func (i *testImage) layer(files map[string]string) *testImage {
	i.t.Helper()
	dir := filepath.Join(i.t.TempDir(), fmt.Sprintf("layer-%d", len(i.layers)))
	if err := os.Mkdir(dir, 0o755); err != nil {
		i.t.Fatal(err)
	}
	for name, text := range files {
		if err := putFile(filepath.Join(dir, name), strings.HasSuffix(name, "/"), text); err != nil {
			i.t.Fatal(err)
		}
	}
	i.layers = append(i.layers, dir)
	return i
}

func putFile(path string, folder bool, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	switch {
	case folder:
		return os.MkdirAll(path, 0o755)
	case strings.HasPrefix(text, "->"):
		return os.Symlink(strings.TrimPrefix(text, "->"), path)
	case text == "whiteout":
		return whiteout(path)
	}
	return os.WriteFile(path, []byte(text), 0o755)
}

// root is the image as a container wants it.
func (i *testImage) root() container.Root {
	i.t.Helper()
	byName := map[string]*container.Entry{}
	for _, layer := range i.layers {
		entries, err := os.ReadDir(layer)
		if err != nil {
			i.t.Fatal(err)
		}
		for _, e := range entries {
			at := filepath.Join(layer, e.Name())
			now := container.Entry{Name: e.Name(), Dir: e.IsDir(), Layers: []string{at}}
			if e.Type() == fs.ModeSymlink {
				now.Link, _ = os.Readlink(at)
			}
			if old := byName[e.Name()]; old != nil && old.Dir && e.IsDir() {
				now.Layers = append(old.Layers, at)
			}
			byName[e.Name()] = &now
		}
	}
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		byName[name] = &container.Entry{Name: name, Link: "usr/" + name}
	}
	r := container.Root{Layers: i.layers, UserXattr: os.Geteuid() != 0}
	for _, e := range byName {
		r.Entries = append(r.Entries, *e)
	}
	return r
}

// use is for walled.
func (i *testImage) use(c *Confinement) {
	c.Root = i.root()
	c.Mounts = append(c.Mounts, container.Mount{From: "/usr", To: "/usr", ReadOnly: true, Options: []string{"rbind"}})
}
