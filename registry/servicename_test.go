package registry

import (
	"regexp"
	"strings"
	"testing"
)

func TestNamesInConsul(t *testing.T) {
	long := strings.Repeat("a", 63)
	for _, tt := range []struct {
		name, app, component string
		index                int
		service, tag         string
	}{
		{"plain", "d1", "worker", 0, "d1-worker", "worker-0"},
		{"a dash in both", "my-app", "ps-worker", 12, "my-app-ps-worker", "ps-worker-12"},
		{"capitals", "MyApp", "Worker", 1, "myapp-worker", "worker-1-74136c12"},
		{"dots and the like", "a.b_c~d", "worker", 0, "a-b-c-d-worker", "worker-0-0ec50bb9"},
		{"a dash at the end", "d1", "worker.", 0, "d1-worker", "worker-0-328e23c3"},
		{"a long app", long, "worker", 0, long, "worker-0-9083f81b"},
		{"a long component", "d1", long, 7, "d1-" + long[:60], long[:52] + "-7-92713669"},
		{"YARN's", "application_1700000000000_0001", "ps", 0, "application-1700000000000-0001-ps", "ps-0-2987a0bc"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := Instance{Component: tt.component, Index: tt.index}
			if got := ServiceName(tt.app, tt.component); got != tt.service {
				t.Errorf("service: got %q, want %q", got, tt.service)
			}
			if got := MemberTag(tt.app, in); got != tt.tag {
				t.Errorf("tag: got %q, want %q", got, tt.tag)
			}
			if got, want := MemberName(tt.app, in, ""), tt.tag+"."+tt.service+".service.consul"; got != want {
				t.Errorf("name: got %q, want %q", got, want)
			}
		})
	}
	if got, want := MemberName("d1", Instance{"worker", 0}, "lab.example."), "worker-0.d1-worker.service.lab.example"; got != want {
		t.Errorf("in a domain: got %q, want %q", got, want)
	}
}

// TestMembersOfAppsShareNoName: what a program finds by a name is of its own gang.
func TestMembersOfAppsShareNoName(t *testing.T) {
	apps := []string{"a", "A", "a-b", "a.b", "a_b", "a~b", "a--b", "a-b-c", "a-", "a.", strings.Repeat("a", 63), strings.Repeat("a", 62) + "b"}
	components := []string{"c", "C", "b-c", "b.c", "c-0", "c-", "c-0-1", strings.Repeat("c", 63), strings.Repeat("c", 62) + "d"}
	seen := map[string]string{}
	for _, app := range apps {
		for _, component := range components {
			for _, index := range []int{0, 1, 10} {
				in := Instance{component, index}
				name, who := MemberName(app, in, ""), app+" "+in.String()
				if other, taken := seen[name]; taken {
					t.Errorf("%s and %s are both %s", other, who, name)
				}
				seen[name] = who
			}
		}
	}
}

var labels = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func FuzzMemberName(f *testing.F) {
	f.Add("d1", "worker", 0)
	f.Add("A.b~", "c_", 1<<30)
	f.Add(strings.Repeat("x", 63), strings.Repeat("y", 63), 9)
	valid := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~-]{0,62}$`)
	f.Fuzz(func(t *testing.T, app, component string, index int) {
		if !valid.MatchString(app) || !valid.MatchString(component) || index < 0 {
			t.Skip("no names of ours")
		}
		name := MemberName(app, Instance{component, index}, "")
		for part := range strings.SplitSeq(name, ".") {
			if !labels.MatchString(part) {
				t.Errorf("%q: %q is no label", name, part)
			}
		}
		if len(name) > 253 {
			t.Errorf("%q is too long for a name", name)
		}
	})
}

// TestRowOfAMemberThatMoves: one that goes by its name may answer elsewhere, one that goes by its host may not.
func TestRowOfAMemberThatMoves(t *testing.T) {
	row := func(addr string) Row {
		return Row{Inc: "old", Addr: addr, Peer: "10.0.0.1:21", Ports: map[string]int{"ps": 20}}
	}
	member := func(host, address, peer string) Member {
		return Member{Inc: "new", Addr: host, Address: address, Peer: peer, Ports: map[string]int{"ps": 20}}
	}
	const name = "ps-0.d1-ps.service.consul:20"
	for _, tt := range []struct {
		what  string
		m     Member
		r     Row
		scope string
		want  bool
	}{
		{"by name, elsewhere", member("10.0.0.2", name, "10.0.0.2:21"), row(name), ScopeInstance, true},
		{"by name, elsewhere, gang", member("10.0.0.2", name, "10.0.0.2:21"), row(name), ScopeGang, false},
		{"by name, other port", member("10.0.0.2", "ps-0.d1-ps.service.consul:22", "10.0.0.2:21"), row(name), ScopeInstance, false},
		{"by the host, back again", member("10.0.0.1", "10.0.0.1:20", "10.0.0.1:21"), row("10.0.0.1:20"), ScopeInstance, true},
		{"by the host, answers elsewhere", member("10.0.0.1", "10.0.0.1:20", "10.0.0.1:22"), row("10.0.0.1:20"), ScopeInstance, false},
		{"by the host, IPv6, answers elsewhere", member("fd00::1", "[fd00::1]:20", "[fd00::1]:22"), row("[fd00::1]:20"), ScopeInstance, false},
	} {
		if got := tt.m.SameRow(tt.r, tt.scope); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.what, got, tt.want)
		}
	}
}
