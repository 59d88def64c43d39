package hadoop

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// ports of a cluster stay the same for its life.
type ports struct {
	Names []namePorts
	Datas []dataPorts
	KDC   int `json:",omitempty"`
}

type namePorts struct{ RPC, HTTP int }

type dataPorts struct{ Data, IPC, HTTP int }

func local(port int) string { return net.JoinHostPort("localhost", strconv.Itoa(port)) }

// Ports come from 12000 to 19999: below what Linux hands to outgoing connections by default, so that
// nobody takes them while a daemon is down, and outside muster's own range of 20000 to 29999.
const lowPort, highPort = 12000, 19999

// claim claims the cluster's ports until it ends.
func (c *Cluster) claim() error {
	var err error
	port := func() int {
		p, e := c.claimPort()
		if e != nil {
			err = e
		}
		return p
	}
	for range c.nameNodes() {
		c.ports.Names = append(c.ports.Names, namePorts{RPC: port(), HTTP: port()})
	}
	for range max(1, c.options.DataNodes) {
		c.ports.Datas = append(c.ports.Datas, dataPorts{Data: port(), IPC: port(), HTTP: port()})
	}
	if c.options.Kerberos {
		c.ports.KDC = port()
	}
	return err
}

// claimPort claims a port. A claim is an abstract unix socket, a lock that all test processes of
// this network namespace see and that goes with its holder.
func (c *Cluster) claimPort() (int, error) {
	for range 10_000 {
		port := lowPort + rand.IntN(highPort-lowPort+1)
		lock, err := net.Listen("unix", fmt.Sprintf("@muster-test/port/%d", port))
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			lock.Close()
			continue
		}
		l.Close()
		c.locks = append(c.locks, lock)
		return port, nil
	}
	return 0, fmt.Errorf("no free port from %d to %d", lowPort, highPort)
}
