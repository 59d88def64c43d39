package container

import (
	"fmt"
	"os"
	"path"
	"strings"

	_ "github.com/opencontainers/cgroups/devices" // without it device rules are refused
	devices "github.com/opencontainers/cgroups/devices/config"

	"github.com/muster-agent/muster/shim/sandbox/cgroup"
)

// standard are the nodes of every container.
var standard = []Node{
	{Path: "/dev/null", Type: 'c', Major: 1, Minor: 3},
	{Path: "/dev/zero", Type: 'c', Major: 1, Minor: 5},
	{Path: "/dev/full", Type: 'c', Major: 1, Minor: 7},
	{Path: "/dev/random", Type: 'c', Major: 1, Minor: 8},
	{Path: "/dev/urandom", Type: 'c', Major: 1, Minor: 9},
	{Path: "/dev/tty", Type: 'c', Major: 5, Minor: 0},
}

// deviceRules deny all but the standard devices, the nodes and the list of the limits. A node of any device may
// be made, so that an image can be unpacked inside; it cannot be opened.
func deviceRules(nodes []Node, listed []cgroup.Device) []*devices.Rule {
	const anything = devices.Wildcard
	rules := []*devices.Rule{
		{Type: devices.WildcardDevice, Major: anything, Minor: anything, Permissions: "rwm"},
		{Type: devices.CharDevice, Major: anything, Minor: anything, Permissions: "m", Allow: true},
		{Type: devices.BlockDevice, Major: anything, Minor: anything, Permissions: "m", Allow: true},
		{Type: devices.CharDevice, Major: 5, Minor: 2, Permissions: "rwm", Allow: true},          // ptmx
		{Type: devices.CharDevice, Major: 136, Minor: anything, Permissions: "rwm", Allow: true}, // pts
	}
	for _, n := range append(append([]Node{}, standard...), nodes...) {
		rules = append(rules, &devices.Rule{
			Type: devices.Type(n.Type), Major: n.Major, Minor: n.Minor, Permissions: "rwm", Allow: true,
		})
	}
	for _, d := range listed {
		rules = append(rules, &devices.Rule{
			Type: devices.Type(d.Type), Major: d.Major, Minor: d.Minor, Permissions: devices.Permissions(d.Access), Allow: true,
		})
	}
	return rules
}

func deviceNodes(nodes []Node) ([]*devices.Device, error) {
	var all []*devices.Device
	for _, n := range append(append([]Node{}, standard...), nodes...) {
		// /dev is a filesystem of the container alone; a node elsewhere would be made in somebody's folder.
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
			Rule: devices.Rule{Type: devices.Type(n.Type), Major: n.Major, Minor: n.Minor, Permissions: "rwm", Allow: true},
			Path: n.Path, FileMode: mode, Uid: n.UID, Gid: n.GID,
		})
	}
	return all, nil
}
