package consul

import (
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/consul/api"
)

// One record that does not decode takes nothing but itself out of what is read.
func TestDecodeAll(t *testing.T) {
	const record, directive, member = `{"run": "r1"}`, `{"seq": 1}`, `{"phase": "ready"}`
	huge := `{"run": "` + strings.Repeat("x", 1<<19)
	for _, c := range []struct {
		name, key, value string
		apps, members    int
		want             string // what is broken
	}{
		{name: "none", key: "muster/a/app", value: record, apps: 2, members: 2},
		{"garbage", "muster/a/app", "garbage", 1, 1, "read muster/a/app: invalid character 'g' looking for beginning of value"},
		{"nothing", "muster/a/app", "", 1, 1, "read muster/a/app: unexpected end of JSON input"},
		{"half of a large one", "muster/a/app", huge, 1, 1, "read muster/a/app: unexpected end of JSON input"},
		{"another type", "muster/a/app", `[1, 2]`, 1, 1, "read muster/a/app: json: cannot unmarshal array"},
		{"a directive", "muster/a/directive", `{"gen": "one"}`, 1, 1, "read muster/a/directive: json: cannot unmarshal string"},
		{"a member", "muster/a/members/worker/0", `{"attempt": "one"}`, 2, 1, "read muster/a/members/worker/0: json: cannot unmarshal string"},
		{name: "a key that is no member's", key: "muster/a/members/worker/x", value: "garbage", apps: 2, members: 2},
		{name: "a checkpoint", key: "muster/a/checkpoint/worker/0", value: "garbage", apps: 2, members: 2},
	} {
		res := results{}
		put := func(key, value string) { res[key] = &api.KVPair{Key: key, Value: []byte(value), ModifyIndex: 1} }
		for _, app := range []string{"a", "b"} {
			put("muster/"+app+"/app", record)
			put("muster/"+app+"/directive", directive)
			put("muster/"+app+"/members/worker/0", member)
		}
		put(c.key, c.value)
		all, broken := decodeAll([]string{"a", "b", "none"}, res)
		members := 0
		for _, s := range all {
			members += len(s.Members)
		}
		said := ""
		for _, err := range broken {
			said += err.Error()
		}
		if len(all) != c.apps || members != c.members || !strings.HasPrefix(said, c.want) || (said == "") != (c.want == "") {
			t.Errorf("%s: got %d apps, %d members, broken %q", c.name, len(all), members, broken)
		}
		if !slices.ContainsFunc(all, func(s Status) bool { return s.ID == "b" && len(s.Members) == 1 }) {
			t.Errorf("%s: the other app is not as it was", c.name)
		}
	}
}
