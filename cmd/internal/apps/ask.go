package apps

import (
	"context"
	"os"
	"os/user"
	"strconv"

	"github.com/muster-agent/muster/registry"
)

// Ask asks an app's conductor for something. What becomes of it its directive shows.
func (k Lookup) Ask(ctx context.Context, address registry.Address, app string, ask registry.Ask) error {
	c, err := k.Open(address)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	if err := c.Ask(ctx, app, ask); err != nil {
		return RegistryError(address, err)
	}
	return nil
}

// Asker names the person for the verdict's cause.
func Asker() string {
	name := strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}
