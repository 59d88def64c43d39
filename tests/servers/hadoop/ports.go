package hadoop

import (
	"net"
	"strconv"

	claims "github.com/muster-agent/muster/tests/servers/ports"
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

// claim claims the cluster's ports until it ends.
func (c *Cluster) claim() error {
	var err error
	port := func() int {
		p, lock, e := claims.Lock()
		if e != nil {
			err = e
			return 0
		}
		c.locks = append(c.locks, lock)
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
