package logs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/tail"
	"github.com/muster-agent/muster/shim/wording"
)

// Reader prints one kind of log of an app's instances.
type Reader struct {
	Lookup apps.Lookup
	Facts  apps.Facts
	File   string
	Follow bool
	Tail   int // lines; -1: all
	Out    io.Writer
}

// One prints one instance's log as it is.
func (l Reader) One(ctx context.Context, instance string) error {
	dir, err := l.dir(instance)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var end sync.WaitGroup
	defer end.Wait()
	defer cancel()
	if l.Follow {
		end.Go(func() { l.cancelAtEnd(ctx, instance, cancel) })
	}
	path := filepath.Join(dir, l.File)
	pointed := l.pointOut(instance, dir)
	err = l.copy(ctx, path, l.Out)
	if errors.Is(err, fs.ErrNotExist) {
		if !pointed {
			fmt.Fprintf(l.Lookup.Warn, "%s is not there yet: nothing was written\n", path)
		}
		return nil
	}
	return err
}

// dir is the log folder of an instance.
func (l Reader) dir(instance string) (string, error) {
	dir := cmp.Or(l.Facts.LogDirs()[instance], filepath.Join(l.Facts.Local.LogDir, instance))
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return "", exit.Usagef("no log of %s/%s on this host (%s); here are: %s", l.Facts.ID, instance, dir,
			wording.OrNone(l.names()))
	}
	return dir, nil
}

// names are the instances that have a log folder or an agent on this host, in the order of components and indexes.
func (l Reader) names() []string {
	var found []registry.Instance
	add := func(name string) {
		in, err := registry.ParseInstance(name)
		if err == nil && !slices.Contains(found, in) {
			found = append(found, in)
		}
	}
	for name, dir := range l.Facts.LogDirs() {
		if _, err := os.Stat(dir); err == nil {
			add(name)
		}
	}
	for name := range l.Facts.States {
		add(name)
	}
	slices.SortFunc(found, func(a, b registry.Instance) int {
		return cmp.Or(cmp.Compare(a.Component, b.Component), cmp.Compare(a.Index, b.Index))
	})
	names := make([]string, len(found))
	for i, in := range found {
		names[i] = in.String()
	}
	return names
}

// All prints every instance's log with its name in front of each line. Lines keep their colours, and steer no terminal
// otherwise.
func (l Reader) All(ctx context.Context) error {
	var mu sync.Mutex
	show := func(instance string) func(string) {
		return func(line string) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(l.Out, "%-12s | %s\n", instance, wording.Program(line))
		}
	}
	names := l.names()
	if !l.Follow {
		if len(names) == 0 {
			return fmt.Errorf("no logs of %s in %s; its instances may run elsewhere: muster status %s", l.Facts.ID,
				l.Facts.Local.LogDir, l.Facts.ID)
		}
		for _, name := range names {
			if err := l.lines(ctx, name, show(name)); err != nil {
				return err
			}
		}
		return nil
	}
	return l.followAll(ctx, show)
}

// followAll follows those that are there and those that come, until the run is over.
func (l Reader) followAll(ctx context.Context, show func(string) func(string)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { l.cancelAtEnd(ctx, "", cancel) })
	tick := time.NewTicker(endPoll)
	defer tick.Stop()
	var mu sync.Mutex
	var errs []error
	following := map[string]bool{}
	for {
		ended := ctx.Err() != nil // before the look: what was there at the end is read to the end
		for _, name := range l.names() {
			if following[name] {
				continue
			}
			following[name] = true
			wg.Go(func() {
				if err := l.lines(ctx, name, show(name)); err != nil {
					mu.Lock()
					defer mu.Unlock()
					errs = append(errs, err)
				}
			})
		}
		if ended {
			break
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (l Reader) lines(ctx context.Context, instance string, show func(string)) error {
	dir, err := l.dir(instance)
	if err != nil {
		return err
	}
	l.pointOut(instance, dir)
	w := &tail.Lines{Show: show}
	defer w.Flush()
	err = l.copy(ctx, filepath.Join(dir, l.File), w)
	if errors.Is(err, fs.ErrNotExist) { // it has not begun
		return nil
	}
	return err
}

// pointOut says where the text is of an instance whose INSTALL failed, or that has written to its standard error alone.
func (l Reader) pointOut(instance, dir string) bool {
	other := strings.Replace(l.File, "stdout", "stderr", 1)
	ended := l.Facts.Lasts[instance].ExitInfo
	switch {
	case strings.HasPrefix(l.File, "std") && ended != nil &&
		strings.Contains(ended.Message, filepath.Join(dir, "errors-1.txt")):
		fmt.Fprintf(l.Lookup.Warn, "%s/%s did not start: %s\n", l.Facts.ID, instance, ended.Message)
	case other != l.File && !written(filepath.Join(dir, l.File)) && written(filepath.Join(dir, other)):
		fmt.Fprintf(l.Lookup.Warn, "%s/%s has written to its standard error alone: add --stderr\n", l.Facts.ID,
			instance)
	default:
		return false
	}
	return true
}

// written tells whether a log, or one that it was rotated to, has text.
func written(path string) bool {
	return slices.ContainsFunc(tail.Parts(path, -1), func(p tail.Part) bool { return files.PlainSize(p.Path) > 0 })
}

// copy prints the rotated files, the oldest first, and the live one.
func (l Reader) copy(ctx context.Context, path string, out io.Writer) error {
	for _, part := range tail.Parts(path, l.Tail) {
		if part.Path == path {
			return status.Follow(ctx, path, part.From, l.Follow, out)
		}
		if err := status.Follow(ctx, part.Path, part.From, false, out); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// endPoll is how often a follower asks whether the run is over.
const endPoll = time.Second

// cancelAtEnd cancels when nothing more can come: the instance's agent (or, without one, every agent of this host) is
// gone and the run is over.
func (l Reader) cancelAtEnd(ctx context.Context, instance string, cancel context.CancelFunc) {
	tick := time.NewTicker(endPoll)
	defer tick.Stop()
	for {
		facts, err := l.Lookup.OnHost(ctx, l.Facts.ID)
		if err == nil && (facts.Local == nil || over(facts, instance)) {
			cancel()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func over(f apps.Facts, instance string) bool {
	if _, lives := f.States[instance]; lives || instance == "" && f.Living() {
		return false
	}
	return f.Result != nil || f.Verdict() != nil
}
