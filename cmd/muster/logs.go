package main

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

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/process"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/tail"
	"github.com/muster-agent/muster/shim/wording"
)

type logsFlags struct {
	ask    flags.Ask
	follow bool
	stderr bool
	agent  bool
	side   string
	tail   int
}

func newLogs(s console.Streams) *cobra.Command {
	f := logsFlags{}
	cmd := &cobra.Command{
		Use: "logs [APP/]INSTANCE|APP", Short: "Print what processes wrote, also after the end", Args: exactly("[APP/]INSTANCE or APP"),
		Long: `Prints the standard output of an instance's process, of all its attempts in the last container that
it had here, or with --stderr its standard error, with --agent what its agent did, with --side NAME
what a side process of it wrote. With APP alone the instances of this host are printed one after the
other, or with -f side by side, each line with its instance in front. -f goes on over restarts and
rotations until the run is over.`,
		Example:           "  muster logs d1/worker-0 -f\n  muster logs worker-0 --stderr --tail 20\n  muster logs d1",
		ValidArgsFunction: completeLogs(&f.ask),
		RunE:              func(cmd *cobra.Command, args []string) error { return f.logs(cmd.Context(), s, args[0]) },
	}
	f.ask.State.Register(cmd.Flags())
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "go on until the run is over")
	cmd.Flags().BoolVar(&f.stderr, "stderr", false, "standard error")
	cmd.Flags().BoolVar(&f.agent, "agent", false, "the agent's own log")
	cmd.Flags().StringVar(&f.side, "side", "", "of the side process `NAME`")
	cmd.Flags().IntVar(&f.tail, "tail", -1, "only the last `N` lines of each")
	return cmd
}

func (f *logsFlags) logs(ctx context.Context, s console.Streams, what string) error {
	switch {
	case f.stderr && f.agent:
		return exit.Usagef("logs: --stderr and --agent: want one of them")
	case f.side != "" && f.agent:
		return exit.Usagef("logs: --side and --agent: want one of them")
	case strings.ContainsAny(f.side, "/\x00"):
		return exit.Usagef("logs: --side %q: want the name of a side process", f.side)
	}
	k, err := f.ask.Lookup(s.Err)
	if err != nil {
		return err
	}
	t, err := k.Target(what, true)
	if err != nil {
		return err
	}
	facts, err := k.OnHost(ctx, t.App)
	if err != nil {
		return err
	}
	if facts.Local == nil {
		return k.UnknownApp(t.App, registry.Address{})
	}
	l := logReader{lookup: k, facts: facts, file: f.file(), follow: f.follow, tail: f.tail, out: s.Out}
	if t.Instance != nil {
		return l.one(ctx, t.Instance.String())
	}
	return l.all(ctx)
}

func (f *logsFlags) file() string {
	switch {
	case f.side != "" && f.stderr:
		return process.SideLogName(f.side, "stderr")
	case f.side != "":
		return process.SideLogName(f.side, "stdout")
	case f.stderr:
		return "stderr.log"
	case f.agent:
		return "agent.log"
	}
	return "stdout.log"
}

// logReader prints one kind of log of an app's instances.
type logReader struct {
	lookup apps.Lookup
	facts  apps.Facts
	file   string
	follow bool
	tail   int // lines; -1: all
	out    io.Writer
}

// one prints one instance's log as it is.
func (l logReader) one(ctx context.Context, instance string) error {
	dir, err := l.dir(instance)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if l.follow {
		go l.cancelAtEnd(ctx, instance, cancel)
	}
	path := filepath.Join(dir, l.file)
	err = l.copy(ctx, path, l.out)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(l.lookup.Warn, "%s is not there yet: nothing was written\n", path)
		return nil
	}
	return err
}

// dir is the log folder of an instance.
func (l logReader) dir(instance string) (string, error) {
	dir := cmp.Or(l.facts.LogDirs()[instance], filepath.Join(l.facts.Local.LogDir, instance))
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return "", exit.Usagef("no log of %s/%s on this host (%s); here are: %s", l.facts.ID, instance, dir, wording.OrNone(l.names()))
	}
	return dir, nil
}

// names are the instances that have a log folder or an agent on this host, in the order of components and indexes.
func (l logReader) names() []string {
	var found []registry.Instance
	add := func(name string) {
		in, err := registry.ParseInstance(name)
		if err == nil && !slices.Contains(found, in) {
			found = append(found, in)
		}
	}
	for name, dir := range l.facts.LogDirs() {
		if _, err := os.Stat(dir); err == nil {
			add(name)
		}
	}
	for name := range l.facts.States {
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

// all prints every instance's log with its name in front of each line.
func (l logReader) all(ctx context.Context) error {
	var mu sync.Mutex
	show := func(instance string) func(string) {
		return func(line string) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(l.out, "%-12s | %s\n", instance, line)
		}
	}
	names := l.names()
	if !l.follow {
		if len(names) == 0 {
			return fmt.Errorf("no logs of %s in %s; its instances may run elsewhere: muster status %s", l.facts.ID, l.facts.Local.LogDir, l.facts.ID)
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
func (l logReader) followAll(ctx context.Context, show func(string) func(string)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go l.cancelAtEnd(ctx, "", cancel)
	tick := time.NewTicker(endPoll)
	defer tick.Stop()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	following := map[string]bool{}
	for {
		ended := ctx.Err() != nil // before the look: whoever was there at the end is read to the end
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

func (l logReader) lines(ctx context.Context, instance string, show func(string)) error {
	dir, err := l.dir(instance)
	if err != nil {
		return err
	}
	w := &lineWriter{show: show}
	defer w.flush()
	err = l.copy(ctx, filepath.Join(dir, l.file), w)
	if errors.Is(err, fs.ErrNotExist) { // it has not begun
		return nil
	}
	return err
}

// copy prints the rotated files, the oldest first, and the live one.
func (l logReader) copy(ctx context.Context, path string, out io.Writer) error {
	for _, part := range tail.Parts(path, l.tail) {
		if part.Path == path {
			return status.Follow(ctx, path, part.From, l.follow, out)
		}
		if err := status.Follow(ctx, part.Path, part.From, false, out); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// endPoll is how often a follower asks whether the run is over.
const endPoll = time.Second

// cancelAtEnd cancels when nothing more can come: the instance's agent (or, without one, every agent of this host) is gone
// and the run is over.
func (l logReader) cancelAtEnd(ctx context.Context, instance string, cancel context.CancelFunc) {
	tick := time.NewTicker(endPoll)
	defer tick.Stop()
	for {
		facts, err := l.lookup.OnHost(ctx, l.facts.ID)
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
