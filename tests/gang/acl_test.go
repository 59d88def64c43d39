package gang

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// by asks a server with a token; an answer that is not 200 has no text.
func by(t *testing.T, s *consulserver.Server, token, method, path string, body any) (status int, text string) {
	t.Helper()
	content, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.HTTPAddr+path, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Consul-Token", token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		return resp.StatusCode, ""
	}
	return resp.StatusCode, string(got)
}

// TestAttackWithTheTokenOfAnotherApp: two gangs run whole with the tokens that `muster acl` describes, on a Consul that
// denies by default. The token of one neither reads nor writes what is the other's, and ends its sessions only where
// both make them on one node.
func TestAttackWithTheTokenOfAnotherApp(t *testing.T) {
	t.Parallel()
	s := guarded(t)
	for name, ownNodes := range map[string]bool{"sessions on the agent's node": false, "on the apps' own": true} {
		t.Run(name, func(t *testing.T) { attackWithTheTokenOfAnother(t, s, ownNodes) })
	}
}

func attackWithTheTokenOfAnother(t *testing.T, s *consulserver.Server, ownNodes bool) {
	own, other := newGang(t, place{consul: s}, workers(2, nil)), newGang(t, place{consul: s}, workers(2, nil))
	tokens := map[*gang]string{}
	for _, g := range []*gang{own, other} {
		nodes := []string{"lab"}
		if ownNodes {
			nodes = []string{consul.SessionNode(g.app)}
			aclPut(t, s, http.MethodPut, "/v1/catalog/register", object{"Node": nodes[0], "Address": "192.0.2.1"}, nil)
		}
		_, tokens[g] = newToken(t, s, "muster-"+g.app, consul.Policy(g.app, nodes))
		for _, in := range g.def.instances() {
			g.agents[in] = start(t, "agent of "+in, g.environment(tokenIs(tokens[g])), g.argsOf(in)...)
		}
	}
	ownToken, otherToken := tokens[own], tokens[other]
	ownCast, otherCast := own.cast(own.def.instances()...), other.cast(other.def.instances()...)
	service := registry.ServiceName(other.app, "worker")
	await(t, "the other's services", func() bool {
		_, text := by(t, s, rootToken, http.MethodGet, "/v1/catalog/service/"+service, nil)
		return strings.Count(text, `"ServiceID"`) == 2
	})

	key := "/v1/kv/muster/" + other.app + "/"
	for _, tt := range []struct {
		name, method, path string
		body               any
	}{
		{"read the run's token", http.MethodGet, key + "app", nil},
		{"write a record", http.MethodPut, key + "members/worker/0", "forged"},
		{"write the directive", http.MethodPut, key + "directive", "forged"},
		{"delete a record", http.MethodDelete, key + "members/worker/0", nil},
		{"delete all", http.MethodDelete, "/v1/kv/muster/?recurse=true", nil},
		{"write in a transaction", http.MethodPut, "/v1/txn", []object{{"KV": object{
			"Verb": "set", "Key": "muster/" + other.app + "/members/worker/0", "Value": "Zm9yZ2Vk",
		}}}},
		{"register its service", http.MethodPut, "/v1/agent/service/register", object{"Name": service, "Port": 1}},
		{"register it in the catalog", http.MethodPut, "/v1/catalog/register", object{
			"Node": "lab", "Address": "127.0.0.1", "Service": object{"Service": service},
		}},
		{"make a session on another node", http.MethodPut, "/v1/session/create", object{"Node": "elsewhere"}},
	} {
		status, text := by(t, s, ownToken, tt.method, tt.path, tt.body)
		if status == http.StatusOK {
			t.Errorf("%s: %d %s", tt.name, status, text)
		}
	}
	if status, text := by(t, s, ownToken, http.MethodGet, "/v1/kv/muster/?keys", nil); status != http.StatusOK ||
		!strings.Contains(text, own.app) || strings.Contains(text, other.app) {
		t.Errorf("list of keys: %d %s", status, text)
	}
	if _, text := by(t, s, ownToken, http.MethodGet, "/v1/catalog/service/"+service, nil); strings.Contains(text, service) {
		t.Errorf("the other's services: %s", text)
	}
	var services map[string]struct{ Service string }
	_, text := by(t, s, rootToken, http.MethodGet, "/v1/agent/services", nil)
	if err := json.Unmarshal([]byte(text), &services); err != nil {
		t.Fatal(err)
	}
	for id, is := range services {
		if is.Service != service {
			continue
		}
		if status, _ := by(t, s, ownToken, http.MethodPut, "/v1/agent/service/deregister/"+id, nil); status == http.StatusOK {
			t.Errorf("service %s is deregistered", id)
		}
	}

	// Where sessions are made on one node, whoever may make some there may end all. The gang goes on.
	all, ended := 0, 0
	for id, name := range sessionsOf(t, s, rootToken) {
		if strings.HasPrefix(name, "muster "+other.app+" ") {
			all++
			if status, _ := by(t, s, ownToken, http.MethodPut, "/v1/session/destroy/"+id, nil); status == http.StatusOK {
				ended++
			}
		}
	}
	if want := map[bool]int{true: 0, false: all}[ownNodes]; all < 2 || ended != want {
		t.Errorf("ended %d of %d sessions of the other, want %d", ended, all, want)
	}
	await(t, "the other's membership again", func() bool {
		_, text := by(t, s, otherToken, http.MethodGet, key[:len(key)-1]+"/live/?recurse=true", nil)
		return strings.Count(text, `"Session"`) == 2
	})
	for _, cast := range []map[string]*actor{ownCast, otherCast} {
		for _, a := range cast {
			a.stays()
			a.exit(0)
		}
	}
	own.succeeds()
	other.succeeds()
}

// sessionsOf are the sessions that a token sees, their names by their ids.
func sessionsOf(t *testing.T, s *consulserver.Server, token string) map[string]string {
	t.Helper()
	_, text := by(t, s, token, http.MethodGet, "/v1/session/list", nil)
	var all []struct{ ID, Name string }
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(fmt.Errorf("sessions: %w: %s", err, text))
	}
	names := map[string]string{}
	for _, one := range all {
		names[one.ID] = one.Name
	}
	return names
}

// row is a line of doctor's.
type row struct {
	Name, Found, Remedy string
	OK                  bool
}

// rowOf is the row of a name in what doctor has printed.
func rowOf(t *testing.T, doctor *process, name string) row {
	t.Helper()
	doctor.wait()
	var answer struct{ Checks []row }
	if err := json.Unmarshal([]byte(doctor.out()), &answer); err != nil {
		t.Fatalf("%v: %s%s", err, doctor.out(), doctor.err())
	}
	i := slices.IndexFunc(answer.Checks, func(r row) bool { return r.Name == name })
	if i < 0 {
		t.Fatalf("no row %s: %s", name, doctor.out())
	}
	return answer.Checks[i]
}

// TestDoctorTellsAnOpenConsul: doctor says what whoever reaches Consul may do to the apps, and what to do about it.
func TestDoctorTellsAnOpenConsul(t *testing.T) {
	t.Parallel()
	closed, open := guarded(t), consulserver.Start(t, consulserver.Options{})
	readable := guarded(t)
	aclPut(t, readable, http.MethodPut, "/v1/acl/policy", object{
		"Name": "all-read", "Rules": `key_prefix "" { policy = "read" }`,
	}, nil)
	aclPut(t, readable, http.MethodPut, "/v1/acl/token/00000000-0000-0000-0000-000000000002", object{
		"Policies": []object{{"Name": "all-read"}},
	}, nil)
	for _, tt := range []struct {
		name   string
		at     *consulserver.Server
		ok     bool
		says   string
		remedy string
	}{
		{"closed", closed, true, "permits nothing below muster/ without a token", ""},
		{"readable", readable, false, "lets everybody read the keys", "muster acl APP"},
		{"open", open, false, "lets everybody write the keys", "muster acl APP"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := blankGang(t, place{consul: tt.at})
			p := start(t, "doctor", g.environment(tokenIs(rootToken)), "doctor", "--json", "--state-dir", g.state,
				"--registry", tt.at.URL())
			c := rowOf(t, p, "registry acl")
			if c.OK != tt.ok || !strings.Contains(c.Found, tt.says) || !strings.Contains(c.Remedy, tt.remedy) {
				t.Errorf("got %+v, want %q and %q", c, tt.says, tt.remedy)
			}
			if status, text := by(t, tt.at, rootToken, http.MethodGet, "/v1/kv/muster/doctor", nil); status == http.StatusOK {
				t.Errorf("doctor has written a key: %s", text)
			}
		})
	}
}

// TestDoctorTellsWhatATokenMayDo: the line of the registry is not ok with a token that no agent could work with.
func TestDoctorTellsWhatATokenMayDo(t *testing.T) {
	t.Parallel()
	at := guarded(t)
	lenient := consulserver.Start(t, consulserver.Options{
		Config: strings.Replace(withACLs, `"deny"`, `"allow"`, 1), Token: rootToken,
	})
	_, empty := newToken(t, at, "nothing", `agent_prefix "" { policy = "read" }`)
	_, keys := newToken(t, at, "keys", `key_prefix "muster/d1/" { policy = "write" }`)
	_, own := newToken(t, at, "d1", `key_prefix "muster/d1/" { policy = "write" } session_prefix "" { policy = "write" }`)
	var bare struct{ SecretID string }
	aclPut(t, at, http.MethodPut, "/v1/acl/token", object{}, &bare)
	for _, tt := range []struct {
		name, token, app string
		ok               bool
		says             string
	}{
		{"none", "", "", false, "wants a token, and was given none"},
		{"none for the app", "", "d1", false, "wants a token for app d1, and was given none"},
		{"without sessions", keys, "d1", false, "may not make sessions"},
		{"without rules", bare.SecretID, "", false, "has neither a policy nor a role"},
		{"of no use", empty, "d1", false, "may not write the keys of app d1"},
		{"another app's", own, "d2", false, "may not write the keys of app d2"},
		{"of the app", own, "d1", true, "answers"},
		{"of some app", own, "", true, "--app-id ID tells whether its token"},
		{"none where all is allowed", "", "", true, "answers"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := at
			if strings.HasSuffix(tt.name, "allowed") {
				at = lenient
			}
			g := blankGang(t, place{consul: at})
			p := start(t, "doctor", g.environment(tokenIs(tt.token)), "doctor", "--json", "--state-dir", g.state,
				"--registry", at.URL(), "--app-id", tt.app)
			c := rowOf(t, p, "registry")
			if c.OK != tt.ok || !strings.Contains(c.Found, tt.says) || !tt.ok && !strings.Contains(c.Remedy, "muster acl ") {
				t.Errorf("got %+v, want %q", c, tt.says)
			}
			if status, text := by(t, at, rootToken, http.MethodGet, "/v1/kv/muster/d1/doctor", nil); status == http.StatusOK {
				t.Errorf("doctor has written a key: %s", text)
			}
		})
	}
}
