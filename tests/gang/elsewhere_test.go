package gang

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/servers/promtool"
)

// elsewhere runs a verb as on a host that has nothing of the app, but may read its registry.
func (g *gang) elsewhere(verb string, args ...string) *process {
	g.t.Helper()
	return g.elsewhereAs(nil, verb, args...)
}

// elsewhereAs is elsewhere with more environment.
func (g *gang) elsewhereAs(env []string, verb string, args ...string) *process {
	g.t.Helper()
	state := filepath.Join(g.t.TempDir(), "state")
	words := append([]string{verb, "--state-dir", state, "--registry", g.place.consul.URL()}, args...)
	return start(g.t, verb+" elsewhere", g.environment(env...), words...)
}

// logsElsewhere: the agents send their logs, and those of their side processes, to whoever may read their registry, one or all, also
// as they grow.
func logsElsewhere(t *testing.T, at place) {
	g := newGang(t, at, workers(2, map[string]string{"muster.side.probe": "echo beside $MUSTER_INSTANCE; exec sleep 1000"}))
	cast := g.begin("--api-listen", "127.0.0.1:0")
	for in, a := range cast {
		a.do(cue{Do: "say", Text: "one of " + in})
		a.do(cue{Do: "say", Text: "two of " + in})
	}
	one := g.elsewhere("logs", g.app+"/worker-1", "--stderr", "--tail", "1")
	if code := one.wait(); code != 0 || one.out() != "two of worker-1\n" {
		t.Errorf("one: code %d\n%s%s", code, one.out(), one.err())
	}
	timed := g.elsewhere("logs", g.app+"/worker-1", "--stderr", "--since", "1h", "--json", "--tail", "1")
	if code := timed.wait(); code != 0 || !strings.Contains(timed.out(), `"stream":"stderr","at":"20`) {
		t.Errorf("logs --since --json: code %d\n%s%s", code, timed.out(), timed.err())
	}
	await(t, "the output of a side process", func() bool {
		side := g.elsewhere("logs", g.app+"/worker-1", "--side", "probe", "--stdout")
		return side.wait() == 0 && side.out() == "beside worker-1\n"
	})
	wrong := g.elsewhere("logs", g.app+"/worker-1", "--side", "prob")
	if code := wrong.wait(); code != 64 || !strings.Contains(wrong.err(), "/worker-1 has no side process prob; it has: probe") {
		t.Errorf("another side process: code %d\n%s%s", code, wrong.out(), wrong.err())
	}
	all := g.elsewhere("logs", g.app, "--stderr")
	code := all.wait()
	for _, line := range []string{"worker-0     | one of worker-0\n", "worker-1     | two of worker-1\n"} {
		if code != 0 || !strings.Contains(all.out(), line) {
			t.Errorf("all: code %d, want %q in\n%s%s", code, line, all.out(), all.err())
		}
	}
	none := g.elsewhere("logs", g.app+"/worker-9")
	if code := none.wait(); code != 64 || !strings.Contains(none.err(), "has no instance worker-9; it has: worker-0, worker-1") {
		t.Errorf("none: code %d\n%s", code, none.err())
	}
	follower := g.elsewhere("logs", g.app, "--stderr", "-f")
	await(t, "what was written before", func() bool { return strings.Contains(follower.out(), "two of worker-0") })
	cast["worker-0"].do(cue{Do: "say", Text: "three of worker-0"})
	await(t, "what is written now", func() bool { return strings.Contains(follower.out(), "three of worker-0") })
	for _, a := range cast {
		a.exit(0)
	}
	if code := follower.wait(); code != 0 {
		t.Errorf("the follower: code %d\n%s", code, follower.err())
	}
	g.succeeds()
	over := g.elsewhere("logs", g.app+"/worker-1")
	if code := over.wait(); code != 64 || !strings.Contains(over.err(), "has ended; its logs are on its own host, 127.0.0.1") {
		t.Errorf("over: code %d\n%s", code, over.err())
	}
	over = g.elsewhere("logs", g.app)
	if code := over.wait(); code != 64 || !strings.Contains(over.err(), "has ended; its logs are on its own hosts, 127.0.0.1") {
		t.Errorf("all over: code %d\n%s", code, over.err())
	}
}

// figuresElsewhere: what the instances use is seen from another host, and Prometheus scrapes the page of a cluster.
func figuresElsewhere(t *testing.T, at place) {
	g := newGang(t, at, workers(2, nil))
	cast := g.begin("--api-listen", "127.0.0.1:0")
	figure := regexp.MustCompile(`"memory": [1-9][0-9]+,\s+"memory_limit": [0-9]+,\s+"cores": [0-9]`)
	await(t, "the use of both instances", func() bool {
		top := g.elsewhere("top", g.app, "--json")
		return top.wait() == 0 && len(figure.FindAllString(top.out(), -1)) == 2
	})
	text := g.scrape()
	for _, want := range []string{
		`muster_memory_bytes{app="` + g.app + `",component="worker",index="0"} `, `index="1",phase="running"} 1`,
		`muster_app_live_instances{app="` + g.app + `"} 2`, `muster_app_unreachable_agents{app="` + g.app + `"} 0`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %s in\n%s", want, text)
		}
	}
	if out := promtool.Run(t, "", strings.NewReader(text), "check", "metrics"); out != "" {
		t.Error(out)
	}
	for _, a := range cast {
		a.exit(0)
	}
	g.succeeds()
}

// scrape reads the metrics of a page for all apps of the registry, as Prometheus does: with a token.
func (g *gang) scrape() string {
	g.t.Helper()
	dir, err := os.MkdirTemp("", "page") // a socket's path is short
	if err != nil {
		g.t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	const secret, socket = "prometheus-reads", "ui.sock"
	tokens := filepath.Join(dir, "tokens")
	if err := os.WriteFile(tokens, fmt.Appendf(nil, "prometheus read %x\n", sha256.Sum256([]byte(secret))), 0o600); err != nil {
		g.t.Fatal(err)
	}
	page := g.elsewhere("ui", "--listen", "unix:"+filepath.Join(dir, socket), "--tokens", tokens, "--url", "https://muster.example.org")
	await(g.t, "the page", func() bool { return strings.Contains(page.out(), "https://muster.example.org") })
	defer page.kill()
	client := http.Client{Timeout: watchdog, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, socket))
		},
	}}
	r, err := http.NewRequestWithContext(g.t.Context(), http.MethodGet, "http://muster.example.org/metrics", nil)
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	answer, err := client.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		g.t.Fatalf("%s, %v: %s", answer.Status, err, text)
	}
	return string(text)
}

// actsElsewhere: programs run and signals arrive from another host, each with a grant of the registry that is used up.
func actsElsewhere(t *testing.T, at place) {
	g := newGang(t, at, workers(2, nil))
	cast := g.begin("--api-listen", "127.0.0.1:0")
	run := g.elsewhere("exec", g.app+"/worker-1", "--", "sh", "-c", "echo in $MUSTER_INSTANCE; exit 7")
	if code := run.wait(); code != 7 || run.out() != "in worker-1\n" {
		t.Errorf("exec: code %d\n%s%s", code, run.out(), run.err())
	}
	if p := g.elsewhere("signal", g.app+"/worker-0", "KILL"); p.wait() != 0 {
		t.Errorf("signal: %s", p.err())
	}
	cast["worker-0"].gone()
	again := g.stage.next("worker-0")
	again.exit(0)
	cast["worker-1"].exit(0)
	g.end()
	if code, text := by(t, at.consul, "", http.MethodGet, "/v1/kv/muster/"+g.app+"/grant/?keys", nil); code != http.StatusNotFound {
		t.Errorf("grants are left: %d %s", code, text)
	}
}

// TestReadersLookAndWritersAct: a token that may read the app's keys shows its logs, and nothing else.
func TestReadersLookAndWritersAct(t *testing.T) {
	t.Parallel()
	at := guarded(t)
	g := newGang(t, place{consul: at}, workers(1, map[string]string{"muster.ssh": "true"}))
	g.agents["worker-0"] = start(t, "agent of worker-0", g.environment(tokenIs(rootToken)), append(g.argsOf("worker-0"),
		"--api-listen", "127.0.0.1:0")...)
	worker := g.stage.next("worker-0")
	worker.do(cue{Do: "say", Text: "loss 0.25"})
	_, reader := newToken(t, at, "reader", `key_prefix "muster/" { policy = "read" }`)
	look := g.elsewhereAs([]string{tokenIs(reader)}, "logs", g.app+"/worker-0", "--stderr")
	if code := look.wait(); code != 0 || look.out() != "loss 0.25\n" {
		t.Errorf("logs: code %d\n%s%s", code, look.out(), look.err())
	}
	act := g.elsewhereAs([]string{tokenIs(reader)}, "exec", g.app+"/worker-0", "--", "true")
	if code := act.wait(); code != 77 || !strings.Contains(act.err(), "lacks permission 'key:write'") {
		t.Errorf("exec: code %d\n%s", code, act.err())
	}
	for token, want := range map[string]int{reader: 77, rootToken: 5} {
		in := g.elsewhereAs([]string{tokenIs(token)}, "ssh", g.app+"/worker-0", "--", "exit 5")
		if code := in.wait(); code != want || want == 77 && !strings.Contains(in.err(), "lacks permission 'key:write'") {
			t.Errorf("ssh: code %d, want %d\n%s", code, want, in.err())
		}
	}
	here := g.beginVerb("logs", g.app) // without a token
	if code := here.wait(); code != 0 || !strings.Contains(here.err(), "worker-0     ! loss 0.25\n") ||
		!strings.Contains(here.err(), "this is what this host has") {
		t.Errorf("logs on the own host: code %d\n%s", code, here.err())
	}
	worker.exit(0)
	if code := g.agents["worker-0"].wait(); code != 0 {
		t.Errorf("agent: code %d", code)
	}
}
