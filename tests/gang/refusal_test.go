package gang

import (
	"net"
	"strings"
	"testing"
	"time"
)

// What is wrong with the command line is said before anything is made.
func TestUsage(t *testing.T) {
	t.Parallel()
	g := blankGang(t, place{})
	dir := t.TempDir()
	workers(2, nil).write(t, dir, "/nowhere")
	agent := []string{"agent", "--app", dir, "--app-id", g.app, "--registry", "consul://127.0.0.1:1"}
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"no such verb", []string{"walk"}, `"walk"`},
		{"no such flag", []string{"run", dir, "--sideways"}, "--sideways"},
		{"no app", []string{"agent", "--app-id", g.app}, "--app is missing"},
		{"no app id", []string{"agent", "--app", dir}, "--app-id is missing"},
		{"malformed app id", []string{"agent", "--app", dir, "--app-id", "a/b"}, `"a/b"`},
		{"malformed run id", append(agent[:5:5], "--run", "-1-"), `"-1-"`},
		{"no such component", append(agent[:7:7], "--component", "chef", "--index", "0"), `"chef"`},
		{"index without component", append(agent[:7:7], "--index", "0"), "without --component"},
		{"component that --instances does not know", []string{"run", dir, "--instances", "chef=1"}, "chef"},
		{"catalog entry that is not there", []string{"run", "catalog:nothing"}, "nothing"},
		{"times that do not fit", append(agent[:7:7], "--session-ttl", "20s"), "lost grace"},
		{"a loss that is faster than a fence", []string{"run", dir, "--lost-mass", "50s"}, "lost mass"},
		{"registry address", append(agent[:5:5], "--registry", "http://x"), "http://x"},
		{"exit code map", append(agent[:7:7], "--exit-code-map", "7=x"), "7=x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := start(t, tt.name, g.environment("MUSTER_AGENT_STATE_DIR="+g.state), tt.args...)
			if code := p.wait(); code != 64 {
				t.Errorf("exit code %d, want 64", code)
			}
			if !strings.Contains(p.err(), tt.want) {
				t.Errorf("it said %q, want %q in it", p.err(), tt.want)
			}
			if p.out() != "" {
				t.Errorf("standard output %q, want none", p.out())
			}
		})
	}
}

// Nobody answers at the registry's address: an agent is patient for a while, then says which address.
func TestRegistryUnreachableAtStart(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // held and deaf, so that nobody else comes to answer there
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	g := blankGang(t, place{})
	dir := t.TempDir()
	workers(1, nil).write(t, dir, "/nowhere")
	address := "consul://" + l.Addr().String()
	p := start(t, "agent", g.environment(), "agent", "--app", dir, "--app-id", g.app, "--component", "worker", "--index", "0",
		"--registry", address, "--host", "127.0.0.1", "--work-dir", g.work, "--state-dir", g.state)
	if code := p.waitFor(watchdog + 30*time.Second); code != 69 {
		t.Errorf("exit code %d, want 69", code)
	}
	if !strings.Contains(p.err(), address) {
		t.Errorf("it said %q, want %s in it", p.err(), address)
	}
}
