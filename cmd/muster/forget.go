package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
)

type forgetFlags struct {
	ask   askFlags
	older string
}

func newForget(s streams) *cobra.Command {
	f := forgetFlags{}
	cmd := &cobra.Command{
		Use: "forget APP | --older-than AGE", Short: "Remove what the registry and this host remember of finished runs", Args: atMost("APP"),
		Long: `Removes the app's keys from its registry and its state files from this host. Logs, work folders
and checkpoints are never touched. Refused (75) while an agent of the app lives. --older-than takes
all apps of this host, and those of --registry, whose last word is older than 36h, 7d or so.`,
		Example:           "  muster forget d1\n  muster forget --older-than 7d --registry consul://127.0.0.1:8500",
		ValidArgsFunction: completeKnown(&f.ask),
		RunE:              func(cmd *cobra.Command, args []string) error { return f.forget(cmd.Context(), s, args) },
	}
	f.ask.register(cmd.Flags())
	cmd.Flags().StringVar(&f.older, "older-than", "", "`AGE` such as 90m, 36h or 7d, in place of APP")
	return cmd
}

func (f *forgetFlags) forget(ctx context.Context, s streams, args []string) error {
	k, err := f.ask.lookup(s.err)
	if err != nil {
		return err
	}
	switch {
	case len(args) == 1 && f.older != "":
		return exit.Usagef("forget: got APP and --older-than, want one of them")
	case len(args) == 1:
		if err := k.forget(ctx, args[0]); err != nil {
			return err
		}
		fmt.Fprintf(s.out, "%s: forgotten\n", args[0])
		return nil
	case f.older == "":
		return exit.Usagef("forget: want APP, or --older-than AGE")
	}
	age, err := parseAge(f.older)
	if err != nil {
		return err
	}
	gone, err := k.forgetOlder(ctx, age, time.Now())
	for _, app := range gone {
		fmt.Fprintf(s.out, "%s: forgotten\n", app)
	}
	return err
}

// parseAge reads a duration, with days as well.
func parseAge(text string) (time.Duration, error) {
	unit := time.Duration(1)
	number := text
	if days, ok := strings.CutSuffix(text, "d"); ok {
		number, unit = days+"h", 24
	}
	d, err := time.ParseDuration(number)
	if err != nil || d < 0 {
		return 0, exit.Usagef("--older-than %q: want an age such as 90m, 36h or 7d", text)
	}
	return d * unit, nil
}

// errLives refuses to forget what still runs.
type errLives struct{ app, who string }

func (e errLives) Error() string {
	return fmt.Sprintf("%s still runs (%s); muster stop %s first", e.app, e.who, e.app)
}

// forget removes one app from its registry, then from this host.
func (k lookup) forget(ctx context.Context, id string) error {
	if err := appdef.CheckName("app", id); err != nil {
		return exit.With(exit.Usage, err)
	}
	f, err := k.onHost(ctx, id)
	if err != nil {
		return err
	}
	if f.living() {
		return exit.With(exit.Held, errLives{id, strings.Join(slices.Sorted(maps.Keys(f.states)), ", ")})
	}
	if f.local != nil && f.phase() == "starting" {
		return exit.With(exit.Held, errLives{id, fmt.Sprintf("pid %d", f.local.Pid)})
	}
	if err := k.forgetThere(ctx, f); err != nil {
		return err
	}
	return k.forgetHere(id)
}

func (k lookup) forgetThere(ctx context.Context, f appFacts) error {
	address, err := k.registryOf(f)
	if err != nil {
		return err
	}
	if address.IsZero() {
		return nil
	}
	c, err := openForQuestions(address)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, registryPatience)
	defer cancel()
	err = c.Forget(ctx, f.id)
	switch {
	case errors.Is(err, consul.ErrLive):
		return exit.With(exit.Held, errLives{f.id, err.Error()})
	case errors.Is(err, registry.ErrNoApp) && f.local == nil:
		return k.unknownApp(f.id, address)
	case err == nil || errors.Is(err, registry.ErrNoApp):
		return nil
	case errors.Is(err, registry.ErrUnreachable) && f.local == nil && !k.named:
		return exit.Usagef("no app %q on this host, and no registry at %s; give --registry or --state-dir", f.id, address)
	case f.local != nil && address == f.local.Registry && nobodyListens(address):
		return nil // the embedded registry died with its run and left its socket
	}
	return registryError(address, err)
}

// nobodyListens tells that a socket has no server any more, which is more than that it is slow.
func nobodyListens(address registry.Address) bool {
	path, ok := address.Socket()
	if !ok {
		return false
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
	}
	_ = c.Close() // it answers, that was the question
	return false
}

// forgetHere removes the state files: app.json, result.json, records and sockets.
func (k lookup) forgetHere(id string) error {
	sockets := []string{k.state.Socket(id, "registry")}
	for _, path := range k.state.Sockets(id) {
		sockets = append(sockets, path)
	}
	var errs []error
	for _, path := range sockets { // long names lie outside the app's folder
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, os.RemoveAll(k.state.App(id)))...)
}

// forgetOlder forgets every app whose last word is older than age, and says which. What still lives is
// passed over; the other failures are told together at the end.
func (k lookup) forgetOlder(ctx context.Context, age time.Duration, now time.Time) (gone []string, err error) {
	known, err := k.state.Apps()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, app := range known {
		if now.Sub(k.lastWord(app.App, app.Started)) < age {
			continue
		}
		err := k.forget(ctx, app.App)
		var lives errLives
		switch {
		case err == nil:
			gone = append(gone, app.App)
		case !errors.As(err, &lives):
			errs = append(errs, err)
		}
	}
	if !k.address.IsZero() {
		there, err := k.forgetOlderThere(ctx, age, now)
		gone = append(gone, there...)
		errs = append(errs, err)
	}
	return gone, errors.Join(errs...)
}

func (k lookup) forgetOlderThere(ctx context.Context, age time.Duration, now time.Time) ([]string, error) {
	c, err := openForQuestions(k.address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	gone, err := c.ForgetOlderThan(ctx, age, now)
	if err != nil {
		err = registryError(k.address, err)
	}
	return gone, err
}

// lastWord is when anything about the app was last written on this host.
func (k lookup) lastWord(id string, started time.Time) time.Time {
	last := started
	entries, err := os.ReadDir(k.state.App(id))
	if err != nil {
		return last
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".json" {
			continue
		}
		if info, err := e.Info(); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last
}
