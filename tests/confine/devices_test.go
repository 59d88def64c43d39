package confine_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/tests/need"
)

// A device that was not granted opens for nobody. Root makes no node of its own; where the operator lets the host's
// root, the node does not open.
func TestDevices(t *testing.T) {
	need.Root(t)
	node, number := strayDevice(t)
	for engine, want := range map[string]map[string]string{
		"container": {"null": "ok", node: "ENOENT", "make-" + number: "ok", "open-" + number: "EPERM", "open-1:3": "ok"},
		"cgroup":    {"null": "ok", node: "EPERM", "open-" + number: "EPERM", "open-1:3": "ok"},
		"process":   {"null": "ok", node: "ok"}, // it holds none, and says so where devices are asked for
	} {
		opens := want[node]
		if engine != "container" && !anybodys(t, node) {
			opens = "EACCES"
		}
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, program("devices", node, number, "1:3"), nil).nodeMaker()
			has(t, j.succeeds("--engine", engine), map[string]string{
				"null": "ok", node: opens, "make-" + number: "EPERM", "make-1:3": "EPERM",
			})
		})
		t.Run(engine+" with the host's ids", func(t *testing.T) {
			t.Parallel()
			j := newJob(t, program("devices", node, number, "1:3"), nil).hostIDs()
			switch {
			case engine == "container": // its own, and no mount of the host's with other options
				j.define(program("devices", node, number, "1:3"), settings{"muster.env.NODES": "/dev"})
			case nodev(t, j.work):
				delete(want, "open-"+number)
				delete(want, "open-1:3")
			}
			has(t, j.succeeds("--engine", engine), map[string]string{"null": "ok", "make-" + number: "EPERM", "make-1:3": "EPERM"})
			j.app += "x"
			policy := j.policy(object{"capabilities": object{"add": []string{"MKNOD"}}})
			out := j.succeeds("--engine", engine, "--policy", policy)
			has(t, out[strings.LastIndex(out, "null ok"):], want) // the log goes on where the first run's ended
		})
	}
}

// anybodys tells whether any user may open a file.
func anybodys(t *testing.T, path string) bool {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()&0o004 != 0
}

// nodev tells whether a folder's file system opens no device at all.
func nodev(t *testing.T, dir string) bool {
	t.Helper()
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	return fs.Flags&unix.ST_NODEV != 0
}

// strayDevice is a character device of this host that no program needs, and its number.
func strayDevice(t *testing.T) (path, number string) {
	t.Helper()
	for _, path := range []string{"/dev/loop-control", "/dev/fuse", "/dev/kmsg", "/dev/net/tun"} {
		var st unix.Stat_t
		if unix.Stat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR {
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		f.Close()
		return path, fmt.Sprintf("%d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev))
	}
	need.Skip(t, "needs a device like /dev/fuse that root can open")
	return "", ""
}
