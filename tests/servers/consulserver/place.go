package consulserver

import (
	"context"
	"net"
	"net/http"
	"os/exec"
)

// place is where a server runs, and how it is reached there.
type place struct {
	address string
	command func(name string, args ...string) *exec.Cmd
	client  *http.Client
}

func placeOf(o Options) place {
	if o.Net == nil {
		return place{"127.0.0.1", exec.Command, http.DefaultClient}
	}
	dial := func(_ context.Context, network, address string) (c net.Conn, err error) {
		err = o.Net.Do(o.Host, func() error {
			c, err = net.DialTimeout(network, address, watchdog)
			return err
		})
		return c, err
	}
	return place{
		address: o.Net.Addr(o.Host),
		command: func(name string, args ...string) *exec.Cmd { return o.Net.Command(o.Host, name, args...) },
		client:  &http.Client{Transport: &http.Transport{DialContext: dial}},
	}
}
