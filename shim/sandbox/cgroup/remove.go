package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/proc"
)

// Remove proves that the cgroup is empty and removes its folders in all hierarchies, with `muster/<app>` and
// `muster` when they are empty too. What is still inside is killed. What will not go until ctx ends is a
// *proc.StuckError, and the cgroup stays.
func (g *Group) Remove(ctx context.Context) error {
	if err := g.remove(ctx); err != nil {
		return fmt.Errorf("remove cgroup %s: %w", g.below, err)
	}
	return g.Close()
}

func (g *Group) remove(ctx context.Context) error {
	// The kernel removes no cgroup that holds a process: what it removes was empty, so nothing need be listed.
	err := g.rmdir()
	for pass := 0; errors.Is(err, unix.EBUSY); pass++ {
		if err := g.kill(ctx, 0); err != nil {
			return err
		}
		err = g.rmdir()
		// A process that is ending may hold it for a moment after its last list.
		if errors.Is(err, unix.EBUSY) && !proc.Pause(ctx, pass) {
			return err
		}
	}
	return err
}

func (g *Group) rmdir() error {
	for _, own := range g.own {
		if err := own.removeTree(g.below); err != nil {
			return err
		}
	}
	for _, own := range g.also {
		if err := own.removeTree(g.below); err != nil {
			return err
		}
	}
	return nil
}

// removeTree removes the cgroup rel and all below it, then the folders between it and f that are empty.
func (f folder) removeTree(rel string) error {
	if err := f.removeBelow(rel); err != nil {
		return err
	}
	for up := filepath.Dir(rel); up != "."; up = filepath.Dir(up) {
		if f.rmdir(up) != nil { // other instances are in it
			break
		}
	}
	return nil
}

// removeBelow removes the cgroup rel and all below it; one that is gone is no error.
func (f folder) removeBelow(rel string) error {
	err := f.rmdir(rel)
	if !errors.Is(err, unix.EBUSY) { // by a process or a cgroup below it
		return err
	}
	child, err := f.open(rel)
	if isGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	names, err := child.children()
	for _, n := range names {
		err = errors.Join(err, child.removeBelow(n))
	}
	if err := errors.Join(err, child.Close()); err != nil {
		return err
	}
	return f.rmdir(rel)
}

// Inodes are the numbers of the cgroups at paths, which the kernel gives to no other one until the next boot. What is
// not there has none.
func Inodes(paths []string) map[string]uint64 {
	found := map[string]uint64{}
	for _, path := range paths {
		var st unix.Stat_t
		if unix.Lstat(path, &st) == nil {
			found[path] = st.Ino
		}
	}
	return found
}

// RemoveAt clears the cgroups that an agent recorded (Group.Paths) before it was killed, as Remove does. A path that
// is gone is no error, and one that is another cgroup by now, of another number than in inodes, is left alone. One that
// is not `…/muster/<app>/<instance>` on a cgroup file system is refused: the record may be damaged.
func RemoveAt(ctx context.Context, paths []string, inodes map[string]uint64) error {
	g := Group{below: "of a killed agent", dirs: map[string]folder{}, own: map[string]folder{}}
	defer g.Close()
	var found []recorded
	for _, path := range paths {
		inode, known := inodes[path]
		if inodes != nil && !known { // it was gone when the record was written
			continue
		}
		r, err := openRecorded(path, inode)
		if err != nil {
			return fmt.Errorf("clear cgroup: %w", err)
		}
		if r.own.File == nil {
			continue
		}
		found = append(found, r)
		if r.dir.File == nil { // of this one only the empty folders above may be left
			g.own[path] = r.own
			continue
		}
		key := r.key()
		if _, taken := g.dirs[key]; taken {
			key = path
		}
		g.own[key], g.dirs[key] = r.own, r.dir
	}
	for pass := 0; ; pass++ {
		if err := g.kill(ctx, 0); err != nil {
			return fmt.Errorf("clear cgroup: %w", err)
		}
		var err error
		for _, r := range found {
			err = errors.Join(err, r.own.removeTree(r.below))
		}
		if !errors.Is(err, unix.EBUSY) || !proc.Pause(ctx, pass) {
			if err != nil {
				return fmt.Errorf("clear cgroup: %w", err)
			}
			return nil
		}
	}
}

// recorded is a folder of a record: that of the agent's own cgroup, and the instance's below it; what is gone is nil.
type recorded struct {
	own, dir folder
	below    string
}

// key under which a group knows such a folder.
func (r recorded) key() string {
	switch {
	case r.dir.has("freezer.state"):
		return "freezer"
	case r.dir.has("cgroup.events"):
		return ""
	default:
		return r.dir.Name()
	}
}

// openRecorded opens what a record names; inode 0 is of a record that has no number.
func openRecorded(path string, inode uint64) (recorded, error) {
	refused := &os.PathError{Op: "remove", Path: path, Err: os.ErrInvalid}
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return recorded{}, refused
	}
	own, below := cutRecorded(path)
	if own == "" {
		return recorded{}, refused
	}
	var err error
	r := recorded{below: below}
	if r.own, err = openFolder(own); err != nil {
		return recorded{}, ignoreGone(err)
	}
	if r.dir, err = r.own.open(below); ignoreGone(err) != nil {
		return recorded{}, errors.Join(err, r.own.Close())
	}
	if r.dir.File != nil && inode != 0 {
		var st unix.Stat_t
		if err := unix.Fstat(int(r.dir.Fd()), &st); err != nil || st.Ino != inode {
			return recorded{}, errors.Join(err, r.dir.Close(), r.own.Close())
		}
	}
	return r, nil
}

// cutRecorded splits …/muster/<app>/<instance> before muster; own is "" when it is not of that form.
func cutRecorded(path string) (own, below string) {
	parts := strings.Split(path, "/")
	n := len(parts)
	if n < 5 || parts[n-3] != "muster" {
		return "", ""
	}
	return strings.Join(parts[:n-3], "/"), strings.Join(parts[n-3:], "/")
}
