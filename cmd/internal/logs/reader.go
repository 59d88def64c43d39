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
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/tail"
	"github.com/muster-agent/muster/shim/wording"
)

// Reader prints logs of an app's instances.
type Reader struct {
	Lookup  apps.Lookup
	Facts   apps.Facts
	Streams []Stream
	Follow  bool
	Tail    int            // lines of each log; -1: all
	Since   time.Time      // zero: whenever they were written
	Grep    *regexp.Regexp // nil: all lines
	JSON    io.Writer      // one object for each line goes there; nil: to the streams as they are
	// Elsewhere are the agents of instances on other hosts, which send their logs, or the history store.
	Elsewhere map[string]apps.Agent
}

// Stream is one kind of log: the file's name in an instance's log folder, and where it is printed.
type Stream struct {
	File string
	Out  io.Writer
	Mark string // between an instance's name and a line
}

// One prints one instance's logs as they are: in the order of time, or side by side as they grow.
func (l Reader) One(ctx context.Context, instance string) error {
	if !l.Follow || !l.Since.IsZero() || l.Grep != nil || l.JSON != nil {
		return l.oneByLines(ctx, instance)
	}
	if agent := l.Elsewhere[instance]; agent != nil {
		_, err := l.each(func(o Stream) (bool, error) { return true, l.fetch(ctx, agent, instance, o, o.Out) })
		return err
	}
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
	pointed := l.pointOut(instance, dir)
	found, err := l.each(func(o Stream) (bool, error) { return l.copy(ctx, filepath.Join(dir, o.File), o.Out) })
	if !found && !pointed && err == nil {
		fmt.Fprintf(l.Lookup.Warn, "%s is not there yet: nothing was written\n", filepath.Join(dir, l.Streams[0].File))
	}
	return err
}

// each prints all streams, and tells whether one of them was there.
func (l Reader) each(show func(Stream) (found bool, err error)) (found bool, err error) {
	founds, errs := make([]bool, len(l.Streams)), make([]error, len(l.Streams))
	var wg sync.WaitGroup
	for i, o := range l.Streams {
		one := func() { founds[i], errs[i] = show(o) }
		if l.Follow {
			wg.Go(one)
		} else {
			one()
		}
	}
	wg.Wait()
	return slices.Contains(founds, true), errors.Join(errs...)
}

// fetch prints a log that the agent of another host sends.
func (l Reader) fetch(ctx context.Context, agent apps.Agent, instance string, o Stream, out io.Writer) error {
	err := agent.Tail(ctx, strings.TrimSuffix(o.File, ".log"), l.Tail, l.Follow, out)
	if err != nil && ctx.Err() == nil {
		return l.failed(instance, err)
	}
	return nil
}

// dir is the log folder of an instance.
func (l Reader) dir(instance string) (string, error) {
	if past := l.Facts.Past; past != nil {
		return "", exit.Usagef("%s/%s left nothing in %s; in it are: %s", l.Facts.ID, instance, past.URL,
			wording.OrNone(l.names()))
	}
	dir := l.Facts.LogDirs()[instance]
	if dir == "" && l.Facts.Local != nil {
		dir = filepath.Join(l.Facts.Local.LogDir, instance)
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return "", l.absent(instance, dir)
	}
	return dir, nil
}

// member is what the registry says of an instance; nil: nothing, or it was not asked.
func (l Reader) member(instance string) *consul.MemberStatus {
	if l.Facts.Registry == nil {
		return nil
	}
	all := l.Facts.Registry.Members
	i := slices.IndexFunc(all, func(m consul.MemberStatus) bool { return m.Instance.String() == instance })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// names are the instances that have a log folder or an agent on this host, or an agent elsewhere, in the order of
// components and indexes.
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
	for name := range l.Elsewhere {
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

// All prints every instance's logs with its name in front of each line, in the order of time, or as they come. Lines
// keep their colours, and steer no terminal otherwise.
func (l Reader) All(ctx context.Context) error {
	names := l.names()
	if len(names) == 0 && !(l.Follow && l.Facts.Local != nil) {
		return l.absentAll()
	}
	if !l.Follow {
		for _, name := range names {
			l.explain(name)
		}
		_, err := l.merge(ctx, names, l.named)
		return err
	}
	show := inTurn(l.named)
	if l.Facts.Local == nil {
		return l.fetchAll(ctx, names, show)
	}
	return l.followAll(ctx, show)
}

// fetchAll follows what the agents of other hosts send, until each has ended.
func (l Reader) fetchAll(ctx context.Context, names []string, show func(entry) error) error {
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() { errs[i] = l.lines(ctx, name, show) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// followAll follows those that are there and those that come, until the run is over.
func (l Reader) followAll(ctx context.Context, show func(entry) error) error {
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
				if err := l.lines(ctx, name, show); err != nil {
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

func (l Reader) lines(ctx context.Context, instance string, show func(entry) error) error {
	l.explain(instance)
	_, err := l.each(func(o Stream) (bool, error) { return l.read(ctx, instance, o, show) })
	return err
}

// explain is pointOut where the instance ran here.
func (l Reader) explain(instance string) {
	if l.Elsewhere[instance] != nil {
		return
	}
	if dir, err := l.dir(instance); err == nil {
		l.pointOut(instance, dir)
	}
}

// pointOut says where the text is of an instance whose INSTALL failed.
func (l Reader) pointOut(instance, dir string) bool {
	ended := l.Facts.Lasts[instance].ExitInfo
	if !strings.HasPrefix(l.Streams[0].File, "std") || ended == nil ||
		!strings.Contains(ended.Message, filepath.Join(dir, "errors-1.txt")) {
		return false
	}
	fmt.Fprintf(l.Lookup.Warn, "%s/%s did not start: %s\n", l.Facts.ID, instance, ended.Message)
	return true
}

// copy prints the rotated files, the oldest first, and the live one. It tells whether one of them was there.
func (l Reader) copy(ctx context.Context, path string, out io.Writer) (found bool, err error) {
	for part, from := range tail.Parts(path, l.Tail) {
		err := status.Follow(ctx, part, from, l.Follow && part == path, out)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return true, err
		}
		found = found || err == nil
	}
	return found, nil
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
