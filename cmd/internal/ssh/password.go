package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/login"
)

// Announcement tells how to log in to the instances of an app with a password, in the lines of HBox's client.
type Announcement struct {
	Lookup apps.Lookup
	App    string
	Out    io.Writer
	Digits bool // the instances serve DIGITS: Progress tells where
}

// announceEvery is how often the registry is asked.
const announceEvery = 2 * time.Second

// Follow permits a password, and tells of each instance's server as it comes, until the function that it returns is
// called. The password lasts as long as the run.
func (a Announcement) Follow(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		fmt.Fprintln(a.Out, "Waiting for vpc login command and password...")
		if a.Digits {
			fmt.Fprintln(a.Out, "Waiting for digits server url...")
		}
		password, key := login.NewPassword()
		tick := time.NewTicker(announceEvery)
		defer tick.Stop()
		run, told := "", map[string]bool{}
		for {
			known, err := Options{Lookup: a.Lookup}.find(ctx, a.App)
			if err == nil && len(known.hosts) > 0 && known.run != run {
				if err = known.permitKey(ctx, key, time.Time{}); err == nil {
					run = known.run
				}
			}
			if err == nil && run == known.run {
				a.tell(known.hosts, password, told)
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return func() { cancel(); work.Wait() }
}

// tell tells of the servers that were not told of.
func (a Announcement) tell(hosts []login.Host, password string, told map[string]bool) {
	for _, h := range hosts {
		command := fmt.Sprintf("ssh root@%s -p %d", h.Address, h.Port)
		if told[h.Name+command] {
			continue
		}
		told[h.Name+command] = true
		fmt.Fprintf(a.Out, "Received vpc login command and password from %s\nLogin command:%s\nPassword:%s\n", h.Name,
			command, password)
	}
}

// permitKey permits a key until a time, and at most until the run ends; zero: until then.
func (f found) permitKey(ctx context.Context, key string, until time.Time) error {
	c, err := apps.Open(f.address)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Permit(ctx, f.app, registry.Login{Run: f.run, Key: key, By: f.by, Until: until})
	switch {
	case errors.Is(err, registry.ErrTooManyLogins):
		return exit.With(exit.Usage, err)
	case err != nil:
		return apps.RegistryError(f.address, err)
	}
	return nil
}
