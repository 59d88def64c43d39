// Package netns puts several hosts on one machine for tests: network namespaces joined by a bridge, whose links a test
// cuts, heals and delays. The bridge lies in a namespace of its own, so nothing of the machine's own network is
// touched. Needs root and iproute2; all is removed when the test ends.
//
//	host 0 (eth0 10.77.0.1) ──┐
//	host 1 (eth0 10.77.0.2) ──┤ bridge
//	host 2 (eth0 10.77.0.3) ──┘
package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/tests/need"
)

// maxHosts is what one /24 holds.
const maxHosts = 250

// prefix begins the names of all our namespaces; the pid of the test process follows.
const prefix = "muster-test-"

// made counts the networks of this process; names are unique by it.
var made atomic.Int64

// Net is a network of hosts, numbered from 0.
type Net struct {
	t      testing.TB
	name   string // of the namespace with the bridge; the hosts' names continue it
	hosts  int
	cut    map[int]bool
	relays map[int]*relay
}

// New makes n hosts that all reach each other. It skips the test where it cannot.
func New(t testing.TB, n int) *Net {
	t.Helper()
	need.Root(t)
	for _, tool := range []string{"ip", "nsenter"} {
		if _, err := exec.LookPath(tool); err != nil {
			need.Skip(t, "needs "+tool+" (iproute2, util-linux)")
		}
	}
	if n < 1 || n > maxHosts {
		t.Fatalf("netns: %d hosts: want 1 to %d", n, maxHosts)
	}
	sweep()
	net := &Net{
		t:      t,
		name:   fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), made.Add(1)),
		hosts:  n,
		cut:    map[int]bool{},
		relays: map[int]*relay{},
	}
	t.Cleanup(net.remove)
	if out, err := exec.Command("ip", "netns", "add", net.name).CombinedOutput(); err != nil {
		need.Skip(t, "no network namespaces here: "+strings.TrimSpace(string(out)))
	}
	net.must("-n", net.name, "link", "add", "bridge", "type", "bridge")
	net.must("-n", net.name, "link", "set", "bridge", "up")
	for i := range n {
		net.plug(i)
	}
	return net
}

// plug makes host i: its namespace, and a cable from its eth0 to the bridge.
func (n *Net) plug(i int) {
	host, p := n.Name(i), port(i)
	n.must("netns", "add", host)
	n.must("-n", n.name, "link", "add", p, "type", "veth", "peer", "name", "eth0", "netns", host)
	n.must("-n", host, "addr", "add", n.Addr(i)+"/24", "dev", "eth0")
	n.must("-n", host, "link", "set", "lo", "up")
	n.must("-n", host, "link", "set", "eth0", "up")
	n.must("-n", n.name, "link", "set", p, "master", "bridge", "up")
}

// Addr is host i's address.
func (n *Net) Addr(i int) string { return fmt.Sprintf("10.77.0.%d", i+1) }

// Name is the name of host i's namespace, as `ip netns` shows it.
func (n *Net) Name(i int) string { return fmt.Sprintf("%s-%d", n.name, i) }

// Command is a command that will run on host i: in its network, with everything else of this machine. What still runs
// there when the test ends is killed.
func (n *Net) Command(i int, name string, args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"--net=" + path(n.Name(i)), "--", name}, args...)...)
}

// Exec runs a command on host i and returns what it wrote to stdout and stderr.
func (n *Net) Exec(i int, name string, args ...string) (string, error) {
	out, err := n.Command(i, name, args...).CombinedOutput()
	return string(out), err
}

// Do calls f on a thread that is on host i: sockets which f makes belong to that host, also after f has returned.
// f makes them itself, not in a goroutine, and starts no process (Command does).
func (n *Net) Do(i int, f func() error) error { return inside(n.Name(i), f) }

// inside calls f on a thread in the namespace of that name.
func inside(name string, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		ns, err := os.Open(path(name))
		if err != nil {
			done <- err
			return
		}
		defer ns.Close()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("enter %s: %w", name, err)
			return
		}
		done <- f()
	}()
	return <-done
}

// Cut takes host i off the bridge. Packets vanish both ways without a word, as behind a broken switch; the host's own
// link stays up.
func (n *Net) Cut(i int) {
	n.t.Helper()
	n.must("-n", n.name, "link", "set", n.uplink(i), "nomaster")
	n.cut[i] = true
}

// Heal puts host i back on the bridge.
func (n *Net) Heal(i int) {
	n.t.Helper()
	n.must("-n", n.name, "link", "set", n.uplink(i), "master", "bridge")
	n.cut[i] = false
}

// Block makes host i's packets to host j vanish without a word, and so all that needs an answer between the two; both
// go on reaching the others.
func (n *Net) Block(i, j int) {
	n.t.Helper()
	n.must("-n", n.Name(i), "neigh", "replace", n.Addr(j), "lladdr", nobody, "dev", "eth0", "nud", "permanent")
}

// Unblock ends Block.
func (n *Net) Unblock(i, j int) {
	n.t.Helper()
	n.must("-n", n.Name(i), "neigh", "delete", n.Addr(j), "dev", "eth0")
}

// nobody is an address that no cable of a network has.
const nobody = "02:00:00:00:00:01"

// remove kills what still runs on the hosts and takes all namespaces away; the cables go with them.
func (n *Net) remove() {
	for i := range n.hosts {
		pids, _ := exec.Command("ip", "netns", "pids", n.Name(i)).Output() // no such host: nothing runs there
		for f := range strings.FieldsSeq(string(pids)) {
			if pid, err := strconv.Atoi(f); err == nil && pid != os.Getpid() {
				_ = syscall.Kill(pid, syscall.SIGKILL) // gone already is as good
			}
		}
		drop(n.Name(i))
	}
	for _, r := range n.relays {
		if err := r.close(); err != nil {
			n.t.Error(err)
		}
	}
	drop(n.name)
}

func (n *Net) must(args ...string) {
	n.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		n.t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// sweep removes what test processes left that were killed before they could.
func sweep() {
	left, _ := filepath.Glob(path(prefix + "*")) // only a bad pattern is an error
	for _, p := range left {
		name := filepath.Base(p)
		pid, _, _ := strings.Cut(strings.TrimPrefix(name, prefix), "-")
		if _, err := os.Stat("/proc/" + pid); errors.Is(err, os.ErrNotExist) {
			drop(name)
		}
	}
}

func drop(name string) {
	_ = exec.Command("ip", "netns", "delete", name).Run() // what was never made cannot be removed
}

func path(name string) string { return "/run/netns/" + name }

// uplink is what of host i is plugged into the bridge.
func (n *Net) uplink(i int) string {
	if n.relays[i] != nil {
		return uplinkOfRelay(i)
	}
	return port(i)
}

// port is the far end of host i's cable.
func port(i int) string { return fmt.Sprintf("port%d", i) }
