package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/containerd/cgroups/v3/cgroup1"
	"github.com/containerd/cgroups/v3/cgroup2"
	"golang.org/x/sys/unix"
)

// errInUse says that processes of somebody else are in an instance's cgroup.
var errInUse = errors.New("in use by processes that are no child of this agent (an agent of the same app and " +
	"instance in another container, or what a killed one left): end them, or give this app another id")

// Group is the cgroup of one instance: on v1 a folder in the hierarchy of each controller, on v2 one. Its methods may
// be called from any goroutine. It holds open folders until Remove or Close.
type Group struct {
	tree  Tree
	below string            // muster/<app>/<instance>
	own   map[string]folder // own cgroups, by controller; "" on v2
	dirs  map[string]folder // those of the instance
	also  []folder          // own cgroups in the hierarchies without a limit
	locks []folder          // those of the instance there, each locked

	closing sync.Once

	mu    sync.Mutex
	start counters
	peak  *os.File // memory.peak of v2, which counts since the last write to this very descriptor
}

// New makes the cgroup of an instance with its limits. One that an agent left empty is removed first, so that all
// counts begin at 0; one with processes is an error. What Tree.Cannot names is left out. On v2 the calling process
// moves to the agents' leaf first; ctx bounds the wait for other agents that do the same.
func New(ctx context.Context, t Tree, app, instance string, l Limits) (*Group, error) {
	g, err := create(ctx, t, app, instance, l)
	if err != nil {
		return nil, fmt.Errorf("make cgroup muster/%s/%s: %w", app, instance, err)
	}
	return g, nil
}

func create(ctx context.Context, t Tree, app, instance string, l Limits) (*Group, error) {
	if err := t.moveToLeaf(ctx); err != nil {
		return nil, err
	}
	if t.NoDevices != "" {
		l.Devices = nil
	}
	g, err := newGroup(t, app, instance, func(name string) bool { return name != "devices" || l.Devices != nil })
	if err != nil {
		return nil, err
	}
	if err = g.clearStale(); err == nil && l.Everywhere {
		err = g.reserve()
	}
	for pass := 0; err == nil; pass++ {
		err = g.make(l)
		// Another agent that removes its last cgroup also removes the empty folders above it.
		if err == nil || !isGone(err) || pass == 10 {
			break
		}
		err = nil
	}
	if err == nil {
		err = g.openDirs()
	}
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// newGroup opens the own cgroups of the controllers that may be used and are wanted.
func newGroup(t Tree, app, instance string, wanted func(controller string) bool) (*Group, error) {
	for _, name := range []string{app, instance} {
		if name == "" || name == "." || name == ".." || len(name) > unix.NAME_MAX || strings.ContainsAny(name, "/\n") {
			return nil, fmt.Errorf("name %q: %w", name, os.ErrInvalid)
		}
	}
	g := &Group{
		tree: t, below: filepath.Join("muster", app, instance), own: map[string]folder{},
		dirs: map[string]folder{},
	}
	for name, dir := range t.owns() {
		if !wanted(name) {
			continue
		}
		f, err := openFolder(dir)
		if err != nil {
			return nil, errors.Join(err, g.Close())
		}
		g.own[name] = f
	}
	if len(g.own) == 0 {
		return nil, errors.New(t.why("memory"))
	}
	return g, nil
}

// Usable tells whether New can make a cgroup, if not with every limit: what Cannot names is left out.
func (t Tree) Usable() bool { return len(t.owns()) > 0 }

// owns are the folders below which cgroups can be made, by controller.
func (t Tree) owns() map[string]string {
	dirs := map[string]string{}
	for name, c := range t.Controllers {
		if c.Why == "" && (t.Mode == V2 || slices.Contains(v1Controllers, name)) {
			dirs[name] = c.Dir
		}
	}
	if t.Mode == V2 && len(dirs) > 0 {
		return map[string]string{"": t.Dir}
	}
	return dirs
}

// clearStale removes what a killed agent left.
func (g *Group) clearStale() error {
	for _, own := range g.own {
		if err := own.clearStale(g.below); err != nil {
			return err
		}
	}
	return nil
}

func (f folder) clearStale(below string) (err error) {
	old, err := f.open(below)
	if isGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, old.Close()) }()
	if err := old.lock(); err != nil { // empty, it may be of an agent that has yet to start its process
		return fmt.Errorf("%s: %w", filepath.Join(f.Name(), below), err)
	}
	pids, err := old.pids()
	if err != nil {
		return err
	}
	if len(pids) > 0 {
		return fmt.Errorf("%s: processes %v: %w", filepath.Join(f.Name(), below), pids, errInUse)
	}
	return f.removeTree(below)
}

// reserve makes the cgroup in the hierarchies without a limit. There agents that share no other cgroup may meet, as
// those of containers whose launcher knows nothing of that hierarchy: a name that another one has locked is in use.
func (g *Group) reserve() error {
	if g.tree.Mode == V2 {
		return nil
	}
	for _, dir := range g.tree.without(g.own) {
		f, err := openFolder(dir)
		if err == nil {
			g.also = append(g.also, f)
			err = g.reserveIn(f)
		}
		if err != nil {
			for _, made := range g.also[:len(g.locks)] {
				err = errors.Join(err, made.removeTree(g.below))
			}
			return err
		}
	}
	return nil
}

func (g *Group) reserveIn(f folder) error {
	for pass := 0; ; pass++ {
		dir, err := f.reserve(g.below)
		if err == nil {
			g.locks = append(g.locks, dir)
			return nil
		}
		if !isGone(err) || pass == 10 { // another agent has removed it, or the empty folders above
			return err
		}
	}
}

// reserve makes the folder anew, so that no record of a dead agent has its number, and locks it.
func (f folder) reserve(below string) (dir folder, err error) {
	if err := f.clearStale(below); err != nil {
		return folder{}, err
	}
	if err := f.makeNew(below); err != nil {
		return folder{}, err
	}
	if dir, err = f.open(below); err != nil {
		return folder{}, err
	}
	if err := errors.Join(dir.lock(), f.shows(below, dir)); err != nil {
		return folder{}, errors.Join(err, dir.Close())
	}
	return dir, nil
}

// without are the own cgroups in the hierarchies of v1, and that of v2 beside them, in which a group has no limit.
func (t Tree) without(own map[string]folder) []string {
	dirs := []string{}
	for _, c := range t.Controllers {
		if c.Dir != "" && c.Why == "" {
			dirs = append(dirs, c.Dir)
		}
	}
	if t.beside != "" && t.host.refusal(t.beside) == "" {
		dirs = append(dirs, t.beside)
	}
	slices.Sort(dirs)
	return slices.DeleteFunc(slices.Compact(dirs), func(dir string) bool {
		for _, f := range own {
			if f.Name() == dir {
				return true
			}
		}
		return false
	})
}

// make has containerd create the cgroup and write the limits.
func (g *Group) make(l Limits) error {
	if g.tree.Mode != V2 {
		_, err := cgroup1.New(g.legacyPath, legacyResources(l, g.tree.Swap), cgroup1.WithHierarchy(g.hierarchy))
		return err
	}
	// Its mount point is our own cgroup: it enables controllers from there down, and nothing above is ours.
	r := unifiedResources(l, g.tree.Swap, func(name string) bool { return g.tree.Controllers[name].Why == "" })
	if !g.tree.has("memory.oom.group") && r.Memory != nil {
		r.Memory.OOMGroup = nil
	}
	_, err := cgroup2.NewManager(g.own[""].path(), "/"+g.below, r)
	return err
}

// hierarchy are containerd's controllers of v1, with the host's root as the root of all hierarchies: legacyPath leads
// to each one.
func (g *Group) hierarchy() ([]cgroup1.Subsystem, error) {
	ignored := []string{"kmem", "kmem.tcp"}
	if !g.tree.Swap {
		ignored = append(ignored, "memsw")
	}
	all := []cgroup1.Subsystem{
		cgroup1.NewMemory("/", cgroup1.IgnoreModules(ignored...)), cgroup1.NewCpu("/"), cgroup1.NewCpuacct("/"),
		cgroup1.NewPids("/"), cgroup1.NewDevices("/"), cgroup1.NewFreezer("/"),
	}
	return slices.DeleteFunc(all, func(s cgroup1.Subsystem) bool {
		_, ok := g.own[string(s.Name())]
		return !ok
	}), nil
}

// legacyPath leads containerd, which puts `/<controller>` before it, to the folder that was opened and checked.
func (g *Group) legacyPath(name cgroup1.Name) (string, error) {
	own, ok := g.own[string(name)]
	if !ok {
		return "", cgroup1.ErrControllerNotActive
	}
	return filepath.Join("..", own.path(), g.below), nil
}

func (g *Group) openDirs() error {
	for name, own := range g.own {
		dir, err := own.open(g.below)
		if err != nil {
			return err
		}
		g.dirs[name] = dir
	}
	return nil
}

// legacy is containerd's handle of the cgroup on v1.
func (g *Group) legacy() (cgroup1.Cgroup, error) {
	return cgroup1.Load(g.legacyPath, cgroup1.WithHierarchy(g.hierarchy), func(c *cgroup1.InitConfig) error {
		c.InitCheck = cgroup1.AllowAny
		return nil
	})
}

// manager is containerd's handle of the cgroup on v2.
func (g *Group) manager() (*cgroup2.Manager, error) {
	return cgroup2.Load("/"+g.below, cgroup2.WithMountpoint(g.own[""].path()))
}

// Add moves a process, all its threads, into the cgroup.
func (g *Group) Add(pid int) error {
	err := g.add(pid)
	if err != nil {
		return fmt.Errorf("move process %d to cgroup %s: %w", pid, g.below, err)
	}
	return nil
}

func (g *Group) add(pid int) error {
	if g.tree.Mode != V2 {
		c, err := g.legacy()
		if err != nil {
			return err
		}
		return c.AddProc(uint64(pid))
	}
	m, err := g.manager()
	if err != nil {
		return err
	}
	return m.AddProc(uint64(pid))
}

// Paths are the folders of the cgroup, one for each hierarchy, sorted: what the next agent gives to RemoveAt.
func (g *Group) Paths() []string {
	var paths []string
	for name := range g.dirs {
		paths = append(paths, filepath.Join(g.own[name].Name(), g.below))
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// Folder is the open folder of the cgroup on v2, for a process that is to be born in it (CLONE_INTO_CGROUP); nil on v1.
// It is closed by Remove and Close.
func (g *Group) Folder() *os.File { return g.dirs[""].File }

// Procs opens cgroup.procs of v2: a process that writes 0 to it joins the cgroup. Nil on v1, where it would be several.
func (g *Group) Procs() (*os.File, error) {
	dir, ok := g.dirs[""]
	if !ok {
		return nil, nil
	}
	return dir.file("cgroup.procs", unix.O_RDWR)
}

// KillOne has the kernel kill one process instead of all when memory runs out: the guard may not be among those.
func (g *Group) KillOne() error {
	dir, ok := g.dirs[""]
	if !ok || !dir.has("memory.oom.group") {
		return nil
	}
	return dir.write("memory.oom.group", "0")
}

// SetMemory sets another limit of memory, in bytes. Less than is in use may be refused with EBUSY on v1, and
// ends in a kill on v2. Swap, and the room between the limit and the reclaim mark, stay.
func (g *Group) SetMemory(bytes int64) error {
	if err := g.setMemory(bytes); err != nil {
		return fmt.Errorf("set memory of cgroup %s to %d bytes: %w", g.below, bytes, err)
	}
	return nil
}

func (g *Group) setMemory(bytes int64) error {
	if why := g.tree.why("memory"); why != "" {
		return errors.New(why)
	}
	if g.tree.Mode == V2 {
		dir := g.dirs[""]
		m, err := g.manager()
		if err != nil {
			return err
		}
		r := &cgroup2.Memory{Max: &bytes}
		if high := dir.limit("memory.high"); high > 0 {
			high = max(1, high+bytes-dir.limit("memory.max"))
			r.High = &high
		}
		return m.Update(&cgroup2.Resources{Memory: r})
	}
	return g.dirs["memory"].setLegacyMemory(bytes)
}

// setLegacyMemory writes the two limits of v1 in the order in which that with swap is never the smaller; containerd's
// Update writes the other order.
func (f folder) setLegacyMemory(bytes int64) error {
	const memory, swap = "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"
	now, both := f.limit(memory), f.limit(swap)
	if both == 0 {
		return f.write(memory, strconv.FormatInt(bytes, 10))
	}
	both += bytes - now
	order := []string{memory, swap}
	if bytes > now {
		order = []string{swap, memory}
	}
	values := map[string]int64{memory: bytes, swap: both}
	for _, name := range order {
		if err := f.write(name, strconv.FormatInt(values[name], 10)); err != nil {
			return err
		}
	}
	return nil
}

// Close lets go of the cgroup, which stays.
func (g *Group) Close() error {
	var errs []error
	g.closing.Do(func() {
		for _, open := range []map[string]folder{g.dirs, g.own} {
			for _, f := range open {
				errs = append(errs, f.Close())
			}
		}
		for _, f := range slices.Concat(g.also, g.locks) {
			errs = append(errs, f.Close())
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.peak != nil {
			errs = append(errs, g.peak.Close())
		}
	})
	return errors.Join(errs...)
}
