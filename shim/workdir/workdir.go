package workdir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/pai"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/hostlock"
	"github.com/muster-agent/muster/shim/openapp"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/wait"
	"github.com/muster-agent/muster/shim/wording"
)

// Refuse refuses a folder for a run's work that is somebody's already: the package itself, or one with files of a
// person's that a run's would replace. What muster has made its own it takes again.
func Refuse(dir string, app *openapp.App, instances []registry.Instance) error {
	if files.Same(dir, app.Package.Path) {
		return exit.Usagef("work folder %s is the package itself: give --work-dir another", dir)
	}
	var names []string
	if !usedBefore(dir) {
		names = []string{"package", "app.json", "result.json"}
	}
	for _, in := range instances { // of a folder that was used before, too: not all that is there is of that run
		names = append(names, in.String())
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		entries, err := os.ReadDir(path)
		if _, there := os.Lstat(path); there != nil || err == nil && len(entries) == 0 || laidOut(path, entries) {
			continue
		}
		return exit.Usagef("work folder %s has a %s that is not muster's and would be replaced: give --work-dir a "+
			"folder of its own", dir, name)
	}
	return nil
}

// usedBefore tells that a run has made the folder its own.
func usedBefore(dir string) bool {
	if info, err := os.Lstat(filepath.Join(dir, ".package.stamp")); err == nil && info.Mode().IsRegular() {
		return true
	}
	var file status.AppFile
	return status.ReadJSON(filepath.Join(dir, "app.json"), &file) == nil && file.App != "" && file.Run != ""
}

// markOf is the file beside an instance's folder that says that an agent made it: a process may do with what is inside
// as it likes.
func markOf(instance string) string { return ".instance-" + instance }

// InputsLedger is the file beside an instance's folder that records which of its inputs are there.
func InputsLedger(instance string) string { return ".inputs-" + instance }

// OutputsMark is the file beside an instance's folder that names the run that its outputs are of.
func OutputsMark(instance string) string { return ".outputs-" + instance }

// OfRun tells whether a run has worked in a folder, or begins to.
func OfRun(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return strings.HasPrefix(e.Name(), markOf("")) || strings.HasPrefix(e.Name(), MadeApp)
	})
}

// MadeApp begins the name of a folder with the package of a command line, while its run lasts.
const MadeApp = ".made-"

// Made are the names in a work folder that a run makes there, in an order to remove them in: what shows that a folder
// is muster's comes after that folder.
func Made(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("work folder: %w", err)
	}
	names := []string{
		"app.json", "result.json", "root", "log", "checkpoint", plan.StoreFolder, "package", "." + pai.JobFile,
	}
	for _, e := range entries {
		if instance, ok := strings.CutPrefix(e.Name(), markOf("")); ok {
			names = append(names, instance, e.Name())
		}
		// locks, what is known of an instance's data, and unfinished files
		for _, prefix := range []string{
			".package.", ".unpack-", ".app.json-", ".result.json-", InputsLedger(""), OutputsMark(""), files.Unfinished,
			MadeApp,
		} {
			if strings.HasPrefix(e.Name(), prefix) {
				names = append(names, e.Name())
			}
		}
	}
	return names, nil
}

// mark notes that the instance's folder is muster's.
func mark(work files.Folder, in registry.Instance) error {
	f, err := work.OpenFile(markOf(in.String()), os.O_CREATE|os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return fmt.Errorf("work folder: %w", err)
	}
	return f.Close()
}

// laidOut tells that an instance's folder is one that an agent has made.
func laidOut(path string, entries []os.DirEntry) bool {
	if info, err := os.Lstat(filepath.Join(filepath.Dir(path), markOf(filepath.Base(path)))); err == nil &&
		info.Mode().IsRegular() {
		return true
	}
	if _, err := os.Lstat(filepath.Join(path, "app", "definition")); err == nil {
		return true
	}
	return len(entries) > 0 && !slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return !strings.HasPrefix(e.Name(), ".") && !slices.Contains(appdef.OwnNames(), e.Name())
	})
}

// lock takes a folder for as long as this process lives, or until the lock is released.
func lock(kind, dir string) (*hostlock.Lock, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("work folder: %w", err)
	}
	lock, err := hostlock.Take(kind + files.ID(dir))
	if errors.Is(err, hostlock.ErrHeld) {
		return nil, fault.Held(fmt.Errorf("folder %s is in use%s; give --work-dir a folder of this app's own", dir,
			usedBy(dir)))
	}
	return lock, err
}

// usedBy names who works there, as far as that was written down.
func usedBy(dir string) string {
	for _, path := range []string{filepath.Join(dir, "app.json"), filepath.Join(filepath.Dir(dir), "app.json")} {
		var f status.AppFile
		if status.ReadJSON(path, &f) == nil {
			return fmt.Sprintf(" by app %s (pid %d, since %s)", f.App, f.Pid, wording.Clock(f.Started))
		}
	}
	return ""
}

// LockRun takes a work folder for a run on this host, until the lock is released.
func LockRun(dir string) (*hostlock.Lock, error) { return lock("work", dir) }

// How long an agent that this one takes over from may still have its folder or its socket.
const (
	TakeoverPatience = 10 * time.Second
	TakeoverPoll     = 200 * time.Millisecond
)

// Take makes the folder of an instance in the work folder and takes it until the lock is released. An agent that this
// one takes over from may have it for TakeoverPatience more.
func Take(ctx context.Context, work string, in registry.Instance) (*hostlock.Lock, error) {
	dir := filepath.Join(work, in.String())
	if err := makeInstance(work, dir, in); err != nil {
		return nil, err
	}
	for end := time.Now().Add(TakeoverPatience); ; {
		held, err := lock("folder", dir)
		if err == nil || !fault.Is(err, registry.ClassHost) || time.Now().After(end) {
			return held, err
		}
		if err := wait.For(ctx, TakeoverPoll); err != nil {
			return nil, err
		}
	}
}

func makeInstance(work, dir string, in registry.Instance) error {
	root, err := files.Below(work)
	if err != nil {
		return err
	}
	folder, err := root.Make(dir)
	if err == nil {
		err = errors.Join(mark(root, in), folder.Close())
	}
	return errors.Join(err, root.Close())
}
