package scripts_test

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/netns"
	claims "github.com/muster-agent/muster/tests/servers/ports"
)

// listener is a component whose instances each listen at global.port, and print it.
func listener(instances int, port string, global settings) small {
	return small{config: global, parts: []part{{
		instances: instances, config: settings{"site.global.port": port},
		commands: []command{{"START", "echo port {$conf:@//site/global/port}; exec python3 -m http.server --bind 127.0.0.1 {$conf:@//site/global/port}"}},
	}}}
}

// listeners starts them and gives their ports, which are those that the processes were told.
func listeners(t *testing.T, s small) (ports []int, stop func()) {
	t.Helper()
	j := newSmall(t, nil, s)
	p := j.begin("--engine", "process")
	for i := range max(1, s.parts[0].instances) {
		name := "worker-" + strconv.Itoa(i)
		j.sees(name, "running", 1)
		n := j.status().instance(t, name).Ports["global.port"]
		j.says(name, "stdout.log", fmt.Sprintf("port %d\n", n))
		await(t, name+" listens", func() bool {
			c, err := net.DialTimeout("tcp", local(n), 5*time.Second) //nolint:noctx // bounded
			if err == nil {
				c.Close()
			}
			return err == nil
		})
		ports = append(ports, n)
	}
	return ports, func() { j.stop(p); j.nothingLeft() }
}

// With {PER_CONTAINER} each instance has a port of its own; without it they share one, but on one host nobody can.
func TestPortsOfOneHost(t *testing.T) {
	for _, pattern := range []string{"${worker.ALLOCATED_PORT}{PER_CONTAINER}", "${worker.ALLOCATED_PORT}"} {
		t.Run(pattern, func(t *testing.T) {
			t.Parallel()
			ports, stop := listeners(t, listener(3, pattern, nil))
			defer stop()
			if slices.Sort(ports); len(slices.Compact(slices.Clone(ports))) != 3 {
				t.Errorf("ports %v, want three", ports)
			}
		})
	}
}

// free are ports that nobody listens at, nor takes while the test runs, in their order.
func free(t *testing.T, n int) []int {
	t.Helper()
	found := claims.Claim(t, n)
	slices.Sort(found)
	return found
}

// DEFAULT_n is taken when it is free, also beside slider.allowed.ports, and else another.
func TestDefaultPort(t *testing.T) {
	t.Run("free", func(t *testing.T) {
		want := free(t, 1)[0]
		ports, stop := listeners(t, listener(1, fmt.Sprintf("${worker.ALLOCATED_PORT}{DEFAULT_%d}", want), nil))
		defer stop()
		if ports[0] != want {
			t.Errorf("port %d, want %d", ports[0], want)
		}
	})
	t.Run("taken", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // at once
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		taken := l.Addr().(*net.TCPAddr).Port
		ports, stop := listeners(t, listener(1, fmt.Sprintf("${worker.ALLOCATED_PORT}{DEFAULT_%d}", taken), nil))
		defer stop()
		if ports[0] == taken || ports[0] < 20000 || ports[0] > 29999 {
			t.Errorf("port %d, want another than %d, of 20000-29999", ports[0], taken)
		}
	})
	t.Run("allowed", func(t *testing.T) {
		some := free(t, 40)
		want := some[20]
		ports, stop := listeners(t, listener(1, fmt.Sprintf("${worker.ALLOCATED_PORT}{DEFAULT_%d}{PER_CONTAINER}", want),
			settings{"site.global.slider.allowed.ports": fmt.Sprintf("%d-%d", some[39], some[0])}))
		defer stop()
		if ports[0] != want {
			t.Errorf("port %d, want %d", ports[0], want)
		}
	})
}

// slider.allowed.ports are the only ones, however they are written; more instances than ports are told so.
func TestAllowedPorts(t *testing.T) {
	some := free(t, 2)
	list := fmt.Sprintf("%d-%d", some[1], some[0]) // from the higher to the lower
	if some[1] != some[0]+1 {
		list = fmt.Sprintf("%d, %d", some[1], some[0])
	}
	allowed := settings{"site.global.slider.allowed.ports": list}
	ports, stop := listeners(t, listener(2, "${worker.ALLOCATED_PORT}{PER_CONTAINER}", allowed))
	if slices.Sort(ports); !slices.Equal(ports, some) {
		t.Errorf("ports %v, want %v", ports, some)
	}
	stop()
	j := newSmall(t, nil, listener(3, "${worker.ALLOCATED_PORT}{PER_CONTAINER}", allowed))
	j.run("--engine", "process").fails(t, registry.ClassNetwork, 69, "worker-* failed: did not start: port global.port: no port is free in * (*)")
	j.nothingLeft()
}

// On two hosts a port without {PER_CONTAINER} is one number, which both come to by themselves.
func TestPortsOfTwoHosts(t *testing.T) {
	need.Root(t)
	t.Parallel()
	hosts := netns.New(t, 2)
	other := newSmall(t, nil, small{parts: []part{{commands: []command{{"START", "echo here; exec sleep 1000"}}}}}) // whose registry is used
	run := other.begin("--engine", "process")
	other.says("worker-0", "stdout.log", "here\n")
	at := "unix:" + filepath.Join(other.state, "apps", other.app, "registry.sock")

	j := newSmall(t, nil, listener(2, "${worker.ALLOCATED_PORT}", nil))
	var agents []*process
	for i := range 2 {
		host := *j
		host.wrap, host.state = hosts.Command(i, "env").Args, filepath.Join(j.state, strconv.Itoa(i))
		agents = append(agents, host.start("agent", "--app", j.dir, "--app-id", j.app, "--component", "worker", "--index", strconv.Itoa(i),
			"--host", hosts.Addr(i), "--work-dir", j.work, "--registry", at, "--engine", "process"))
	}
	var ports []string
	for i := range 2 {
		name := "worker-" + strconv.Itoa(i)
		j.says(name, "stdout.log", "port ")
		ports = append(ports, read(j.log(name, "stdout.log")))
	}
	if ports[0] != ports[1] {
		t.Errorf("ports %q, want the same on both hosts", ports)
	}
	j.does("stop", j.app, "--registry", at)
	for _, a := range agents {
		if code := a.wait(); code != 0 {
			t.Errorf("an agent ended with %d, want 0", code)
		}
	}
	j.nothingLeft()
	other.stop(run)
}
