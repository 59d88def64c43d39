package apps

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

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
)

// errLives refuses to forget what still runs.
type errLives struct{ app, who string }

func (e errLives) Error() string {
	return fmt.Sprintf("%s still runs (%s); muster stop %s first", e.app, e.who, e.app)
}

// Forget removes one app from its registry, then from this host.
func (k Lookup) Forget(ctx context.Context, id string) error {
	err := k.forget(ctx, id, k.forgetThere)
	if errors.Is(err, registry.ErrUnreachable) && k.known(id) {
		err = fmt.Errorf("%w; muster forget %s --force removes what this host knows of it", err, id)
	}
	return err
}

// ForgetHere removes one app from this host although its registry does not answer, and says what may be left there.
func (k Lookup) ForgetHere(ctx context.Context, id string) error {
	return k.forget(ctx, id, func(ctx context.Context, f Facts) error {
		err := k.forgetThere(ctx, f)
		if !errors.Is(err, registry.ErrUnreachable) || f.Local == nil {
			return err
		}
		fmt.Fprintf(k.Warn, "%s: registry %s does not answer: keys of the app may be left there\n", id,
			f.Local.Registry)
		return nil
	})
}

// known tells whether this host has records of the app.
func (k Lookup) known(id string) bool {
	_, err := os.Stat(filepath.Join(k.State.App(id), "app.json"))
	return err == nil
}

func (k Lookup) forget(ctx context.Context, id string, there func(context.Context, Facts) error) error {
	if err := appdef.CheckName("app", id); err != nil {
		return exit.With(exit.Usage, err)
	}
	f, err := k.OnHost(ctx, id)
	if err != nil {
		return err
	}
	if f.Living() {
		return exit.With(exit.Held, errLives{id, strings.Join(slices.Sorted(maps.Keys(f.States)), ", ")})
	}
	if f.Local != nil && f.Phase() == "starting" {
		return exit.With(exit.Held, errLives{id, fmt.Sprintf("pid %d", f.Local.Pid)})
	}
	if err := there(ctx, f); err != nil {
		return err
	}
	return k.forgetHere(id)
}

func (k Lookup) forgetThere(ctx context.Context, f Facts) error {
	address, err := k.registryOf(ctx, f)
	if err != nil {
		return err
	}
	if address.IsZero() {
		return nil
	}
	c, err := Open(address)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	err = c.Forget(ctx, f.ID)
	switch {
	case errors.Is(err, consul.ErrLive):
		return exit.With(exit.Held, errLives{f.ID, err.Error()})
	case errors.Is(err, registry.ErrNoApp) && f.Local == nil:
		return k.UnknownApp(f.ID, address)
	case err == nil || errors.Is(err, registry.ErrNoApp):
		return nil
	case errors.Is(err, registry.ErrUnreachable) && f.Local == nil && !k.Named:
		return exit.Usagef("no app %q on this host, and no registry at %s; give --registry or --state-dir", f.ID,
			address)
	case f.Local != nil && address == f.Local.Registry && k.SocketGone(ctx, address):
		return nil // the embedded registry died with its run and left its socket
	}
	return RegistryError(address, err)
}

// SocketGone tells that a registry at a socket has ended, which is more than that it is slow: an embedded one ends with
// its run.
func (k Lookup) SocketGone(ctx context.Context, address registry.Address) bool {
	path, ok := address.Socket()
	if !ok || k.Page != nil { // it is the socket of the page's host
		return false
	}
	c, err := (&net.Dialer{Timeout: socketPatience}).DialContext(ctx, "unix", path)
	if err == nil {
		_ = c.Close() // it answers, that was the question
	}
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// forgetHere removes the state files: app.json, result.json, records and sockets.
func (k Lookup) forgetHere(id string) error {
	sockets := []string{k.State.Socket(id, "registry")}
	for _, path := range k.State.Sockets(id) {
		sockets = append(sockets, path)
	}
	var errs []error
	for _, path := range sockets { // long names lie outside the app's folder
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, os.RemoveAll(k.State.App(id)))...)
}

// ForgetOlder forgets every app whose last word is older than age, and says which. What still lives is
// passed over; the other failures are told together at the end.
func (k Lookup) ForgetOlder(ctx context.Context, age time.Duration, now time.Time) (gone []string, err error) {
	known, err := k.State.Apps()
	if err != nil {
		return nil, exit.With(exit.Forbidden, err)
	}
	var errs []error
	for _, app := range known {
		if now.Sub(k.lastWord(app.App, app.Started)) < age {
			continue
		}
		err := k.Forget(ctx, app.App)
		var lives errLives
		switch {
		case err == nil:
			gone = append(gone, app.App)
		case !errors.As(err, &lives):
			errs = append(errs, err)
		}
	}
	if !k.Address.IsZero() {
		there, err := k.forgetOlderThere(ctx, age, now)
		gone = append(gone, there...)
		errs = append(errs, err)
	}
	return gone, errors.Join(errs...)
}

func (k Lookup) forgetOlderThere(ctx context.Context, age time.Duration, now time.Time) ([]string, error) {
	c, err := Open(k.Address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	gone, err := c.ForgetOlderThan(ctx, age, now)
	if err != nil {
		err = RegistryError(k.Address, err)
	}
	return gone, err
}

// lastWord is when anything about the app was last written on this host.
func (k Lookup) lastWord(id string, started time.Time) time.Time {
	last := started
	entries, err := os.ReadDir(k.State.App(id))
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
