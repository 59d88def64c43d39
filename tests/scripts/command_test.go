package scripts_test

import (
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/tests/need"
)

// shells is a package of shell commands alone, as Slider's for nc and ping: one that sleeps, and listeners, each on a port
// that it exports. The second kind of listener is left behind.
func shells() small {
	const (
		port   = "{$conf:@//site/global/listen_port}"
		listen = "python3 -u -m http.server --bind 127.0.0.1 " + port
	)
	life := []command{
		{"STATUS", "if [ -e sick ]; then cat sick >&2; exit 1; fi; exec 3<>/dev/tcp/127.0.0.1/" + port},
		{"STOP", "echo stopping >>$MUSTER_LOG_DIR/stopped"},
		{"PING", "echo pong from $MUSTER_INSTANCE on " + port},
		{"COMPLAIN", "echo not here >&2; exit 9"},
	}
	config := settings{"site.global.listen_port": "${NC.ALLOCATED_PORT}{PER_CONTAINER}"}
	left := settings{"site.global.listen_port": "${LEFT.ALLOCATED_PORT}"}
	return small{
		parts: []part{
			{name: "SLEEP", commands: []command{{"START", "sleep 1000"}}},
			{name: "NC", instances: 2, commands: append([]command{{"START", "exec " + listen}}, life...), exports: "Servers-host_port", config: config},
			{name: "LEFT", commands: append([]command{{
				"START", "rm -f sick; setsid " + listen + " & echo $! >{$conf:@//site/global/pid_file}; " +
					"until (exec 3<>/dev/tcp/127.0.0.1/" + port + ") 2>/dev/null; do sleep 0.05; done",
			}}, life...), exports: "Left-host_port", config: left},
		},
		config: settings{"muster.restart": "instance"},
		more: object{"exportGroups": []object{
			{"name": "Servers", "exports": []object{{"name": "host_port", "value": "${NC_HOST}:${site.global.listen_port}"}}},
			{"name": "Left", "exports": []object{{"name": "host_port", "value": "${LEFT_HOST}:${site.global.listen_port}"}}},
		}},
	}
}

// A package without a script lives by its commands.
func TestCommands(t *testing.T) {
	need.Root(t)
	for name, c := range map[string]struct {
		as   *syscall.Credential
		args []string
	}{
		"container":  {nil, []string{"--engine", "container"}},
		"cgroup":     {nil, []string{"--engine", "cgroup"}},
		"process":    {nil, []string{"--engine", "process"}},
		"plain user": {plainUser(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newSmall(t, c.as, shells())
			p := j.begin(c.args...)
			instances := []string{"SLEEP-0", "NC-0", "NC-1", "LEFT-0"}
			for _, in := range instances {
				j.sees(in, "running", 1)
			}
			was := j.remains(instances...)
			j.listening("NC-0", "NC-1", "LEFT-0")
			if out := j.does("command", j.app+"/NC-1", "PING"); !strings.HasPrefix(out, "pong from NC-1 on 2") {
				t.Errorf("PING said %q", out)
			}
			if out, said, code := j.verb("command", j.app+"/NC-1", "COMPLAIN"); code != 9 || said != "not here\n" || out != "" {
				t.Errorf("COMPLAIN ended with %d, said %q and %q", code, out, said)
			}
			if _, said, code := j.verb("command", j.app+"/NC-1", "NONE"); code == 0 || !strings.Contains(said, "no command NONE; the package has [COMPLAIN PING START STATUS STOP]") {
				t.Errorf("NONE ended with %d: %s", code, said)
			}
			j.must(os.WriteFile(j.own("LEFT-0", "sick"), []byte("it has a cold\n"), 0o644))
			j.notes("LEFT-0", `cause="STATUS failed 2 times: it has a cold"`)
			j.sees("LEFT-0", "running", 2)
			j.listening("LEFT-0")
			j.stop(p)
			for _, in := range instances[1:] {
				if got := read(j.log(in, "stopped")); got != "stopping\n" {
					t.Errorf("STOP of %s left %q", in, got)
				}
			}
			j.nothingLeft(was...)
		})
	}
}

// listening waits until each instance answers at the address that it exports, which is its own.
func (j *job) listening(instances ...string) {
	j.t.Helper()
	report := j.status()
	taken := map[string]string{}
	for _, name := range instances {
		in := report.instance(j.t, name)
		want := map[string]string{"Servers.host_port": local(in.Ports["global.listen_port"])}
		if in.Component == "LEFT" {
			want = map[string]string{"Left.host_port": local(in.Ports["global.listen_port"])}
		}
		if d := cmp.Diff(want, in.Exports); d != "" {
			j.t.Errorf("exports of %s: -want +got\n%s", name, d)
		}
		for _, addr := range want {
			if other, ok := taken[addr]; ok {
				j.t.Errorf("%s and %s are both at %s", name, other, addr)
			}
			taken[addr] = name
			await(j.t, name+" at "+addr, func() bool {
				c, err := net.DialTimeout("tcp", addr, 5*time.Second) //nolint:noctx // bounded
				if err == nil {
					c.Close()
				}
				return err == nil
			})
		}
	}
}
