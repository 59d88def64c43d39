package gang

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// rootToken is the first management token of a server with ACLs.
const rootToken = "6d75a000-0000-4000-8000-000000000002"

const withACLs = `acl { enabled = true, default_policy = "deny", tokens { initial_management = "` + rootToken + `" } }`

// guarded starts a Consul that denies whatever a token does not allow.
func guarded(t *testing.T) *consulserver.Server {
	t.Helper()
	return consulserver.Start(t, consulserver.Options{Config: withACLs, Token: rootToken})
}

// aclPut changes the ACLs of a server, as its administrator.
func aclPut(t *testing.T, s *consulserver.Server, method, path string, body, into any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.HTTPAddr+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Consul-Token", rootToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s", method, path, resp.Status)
	}
	if into != nil {
		if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
			t.Fatal(err)
		}
	}
}

// newToken makes a token with these rules.
func newToken(t *testing.T, s *consulserver.Server, name, rules string) (accessor, secret string) {
	t.Helper()
	aclPut(t, s, http.MethodPut, "/v1/acl/policy", object{"Name": name, "Rules": rules}, nil)
	var made struct{ AccessorID, SecretID string }
	aclPut(t, s, http.MethodPut, "/v1/acl/token", object{"Policies": []object{{"Name": name}}}, &made)
	return made.AccessorID, made.SecretID
}

// allRights are what the agents of any gang need.
const allRights = `key_prefix "muster/" { policy = "write" } session_prefix "" { policy = "write" }`

// tokenIs is the environment of a muster with that token.
func tokenIs(secret string) string { return "CONSUL_HTTP_TOKEN=" + secret }

// TestTokenWithoutTheRight: whoever has a token without the right is refused at once with 77 and Consul's own words, by
// every verb, and the gang that they asked about goes on.
func TestTokenWithoutTheRight(t *testing.T) {
	t.Parallel()
	s := guarded(t)
	g := newGang(t, place{consul: s}, workers(2, nil))
	_, good := newToken(t, s, "all", allRights)
	for _, in := range g.def.instances() {
		g.agents[in] = start(t, "agent of "+in, g.environment(tokenIs(good)), g.argsOf(in)...)
	}
	cast := g.cast(g.def.instances()...)

	for _, tt := range []struct {
		name, rules string
		reads       bool // enough to look at the gang
	}{
		{"anonymous", "", false},
		{"another prefix", `key_prefix "other/" { policy = "write" } session_prefix "" { policy = "write" }`, false},
		{"only to read", `key_prefix "muster/" { policy = "read" } session_prefix "" { policy = "write" }`, true},
		{"no sessions", `key_prefix "muster/" { policy = "write" }`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env := g.environment()
			if tt.rules != "" {
				_, secret := newToken(t, s, strings.ReplaceAll(tt.name, " ", "-"), tt.rules)
				env = g.environment(tokenIs(secret))
			}
			refused := func(name string, args ...string) {
				t.Helper()
				p := start(t, name, env, args...)
				if code := p.wait(); code != 77 {
					t.Errorf("%s: exit code %d, want 77: %s", name, code, p.err())
				}
				if !strings.Contains(p.err(), "Permission denied") && !strings.Contains(p.err(), "Permission is denied") {
					t.Errorf("%s: it said %q, want Consul's words in it", name, p.err())
				}
				remedy := "; give CONSUL_HTTP_TOKEN a token with the rules that muster acl APP prints: "
				if at := slices.Index(args, "--app-id"); at > 0 {
					app := args[at+1]
					remedy = "; give CONSUL_HTTP_TOKEN a token with the rules that muster acl " + app + ` prints: to write key_prefix "muster/` + app + `/", service_prefix "`
				}
				if name == "run" { // itself, or its agents
					remedy = "; give CONSUL_HTTP_TOKEN a token with the rules that muster acl "
				}
				if !strings.Contains(p.err(), remedy) {
					t.Errorf("%s: it said %q, want %q in it", name, p.err(), remedy)
				}
			}
			fresh := blankGang(t, g.place)
			refused("agent of a new app", "agent", "--app", g.dir, "--app-id", fresh.app, "--component", "worker", "--index", "0",
				"--registry", s.URL(), "--host", "127.0.0.1", "--work-dir", fresh.work, "--state-dir", fresh.state)
			if !tt.reads { // else it learns that the index is held
				refused("agent of the app", "agent", "--app", g.dir, "--app-id", g.app, "--component", "worker", "--index", "0",
					"--registry", s.URL(), "--host", "127.0.0.1", "--work-dir", fresh.work, "--state-dir", fresh.state)
				refused("agent without an index", "agent", "--app", g.dir, "--app-id", g.app,
					"--registry", s.URL(), "--host", "127.0.0.1", "--work-dir", fresh.work, "--state-dir", fresh.state)
			}
			refused("run", "run", g.dir, "--app-id", blankGang(t, g.place).app, "--work-dir", fresh.work, "--state-dir", fresh.state,
				"--registry", s.URL(), "--host", "127.0.0.1")
			if tt.name == "no sessions" { // enough to ask
				return
			}
			for _, where := range [][]string{{"--state-dir", g.state}, {"--state-dir", fresh.state, "--registry", s.URL()}} {
				if !tt.reads {
					refused("status", append([]string{"status", g.app}, where...)...)
					refused("ps", append([]string{"ps", g.app}, where...)...)
					refused("save", append([]string{"save", g.app}, where...)...)
				}
				refused("stop", append([]string{"stop", g.app}, where...)...)

				refused("flex", append([]string{"flex", g.app, "worker=3"}, where...)...)
			}
			if !tt.reads {
				refused("forget", "forget", g.app, "--state-dir", fresh.state, "--registry", s.URL())
				refused("ps of all", "ps", "--state-dir", fresh.state, "--registry", s.URL())
			}
		})
	}
	for _, a := range cast {
		a.stays()
		a.exit(0)
	}
	g.succeeds()
}

// argsOf are the arguments of an instance's agent.
func (g *gang) argsOf(instance string) []string {
	g.t.Helper()
	in, err := registry.ParseInstance(instance)
	if err != nil {
		g.t.Fatal(err)
	}
	return g.agentArgs(in)
}

// TestTokenIsRotated: agents read the file of their token again when Consul refuses it. Until there is a good one they
// say so, and their processes run.
func TestTokenIsRotated(t *testing.T) {
	t.Parallel()
	s := guarded(t)
	g := newGang(t, place{consul: s}, workers(2, nil))
	file := filepath.Join(t.TempDir(), "token")
	hand := func() (accessor string) {
		t.Helper()
		accessor, secret := newToken(t, s, "all-"+rand.Text(), allRights)
		if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return accessor
	}
	first := hand()
	for _, in := range g.def.instances() {
		g.agents[in] = start(t, "agent of "+in, g.environment("CONSUL_HTTP_TOKEN_FILE="+file), g.argsOf(in)...)
	}
	cast := g.cast(g.def.instances()...)

	aclPut(t, s, http.MethodDelete, "/v1/acl/token/"+first, nil, nil)
	for _, in := range g.def.instances() {
		g.agentSays(in, "registry refuses the token")
	}
	hand()
	for in, a := range cast {
		g.agentSays(in, "registry answers again")
		a.stays()
		a.exit(0)
	}
	g.succeeds()
}
