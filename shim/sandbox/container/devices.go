package container

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	devices "github.com/opencontainers/cgroups/devices/config"
	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"

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

// shownNodes are nodes for a container with ids of its own, which may make none: libcontainer shows it those of the
// host that have the same path. The others are made in the container's folder, and mounted.
func (s Spec) shownNodes(
	nodes []*devices.Device, mounts []*configs.Mount,
) (theirs []*devices.Device, more []*configs.Mount, err error) {
	for i, n := range nodes {
		if isNode(n) {
			theirs = append(theirs, n)
			continue
		}
		dir := filepath.Join(s.Dir, "nodes")
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return nil, nil, err
		}
		at, kind := filepath.Join(dir, strconv.Itoa(i)), uint32(unix.S_IFCHR)
		if n.Type == devices.BlockDevice {
			kind = unix.S_IFBLK
		}
		err := unix.Mknod(at, kind|uint32(n.FileMode.Perm()), int(unix.Mkdev(uint32(n.Major), uint32(n.Minor))))
		err = cmp.Or(err, unix.Chmod(at, uint32(n.FileMode.Perm())), os.Lchown(at, int(n.Uid), int(n.Gid)))
		if err != nil {
			return nil, nil, fmt.Errorf("device node %s: %w", n.Path, err)
		}
		mounts = append(mounts, bind(at, n.Path, unix.MS_NOSUID|unix.MS_NOEXEC))
	}
	return theirs, mounts, nil
}

// isNode tells whether the host has the device at the same path.
func isNode(n *devices.Device) bool {
	var is unix.Stat_t
	if err := unix.Stat(n.Path, &is); err != nil {
		return false
	}
	kind := uint32(unix.S_IFCHR)
	if n.Type == devices.BlockDevice {
		kind = unix.S_IFBLK
	}
	return is.Mode&unix.S_IFMT == kind && is.Rdev == unix.Mkdev(uint32(n.Major), uint32(n.Minor))
}
