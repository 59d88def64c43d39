package container

import (
	"fmt"
	"os"
	"path"
	"strings"

	devices "github.com/opencontainers/cgroups/devices/config"

	"github.com/muster-agent/muster/shim/sandbox/cgroup"
)

// deviceNodes are the nodes to make in /dev: the standard ones and those of the list. The cgroup decides which may be
// opened.
func deviceNodes(nodes []Node) ([]*devices.Device, error) {
	var standard []Node
	for _, d := range cgroup.StandardDevices() {
		standard = append(standard, Node{Path: d.Path, Type: d.Type, Major: d.Major, Minor: d.Minor})
	}
	var all []*devices.Device
	for _, n := range append(standard, nodes...) {
		// /dev is a filesystem of the container alone; a node elsewhere would be made in a folder of the host.
		if path.Clean(n.Path) != n.Path || !strings.HasPrefix(n.Path, "/dev/") {
			return nil, fmt.Errorf("device node %s: want a path below /dev", n.Path)
		}
		if n.Type != 'c' && n.Type != 'b' {
			return nil, fmt.Errorf("device node %s: type %q: want c or b", n.Path, n.Type)
		}
		mode := os.FileMode(n.Mode)
		if mode == 0 {
			mode = 0o666
		}
		all = append(all, &devices.Device{
			Rule: devices.Rule{Type: devices.Type(n.Type), Major: n.Major, Minor: n.Minor},
			Path: n.Path, FileMode: mode, Uid: n.UID, Gid: n.GID,
		})
	}
	return all, nil
}
