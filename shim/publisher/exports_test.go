package publisher

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/registry"
)

func TestWhatIsPublished(t *testing.T) {
	for _, tt := range []struct {
		phase registry.Phase
		up    bool
		want  bool
	}{
		{registry.PhaseJoined, true, true},
		{registry.PhaseReady, true, true},
		{registry.PhaseReady, false, false},
		{registry.PhaseEnded, true, false},
		{registry.PhaseFailed, true, false},
		{registry.PhaseLeft, true, false},
		{registry.PhaseLost, true, false},
		{"", true, false},
	} {
		if got := (memberView{Phase: tt.phase, Up: tt.up}).published(); got != tt.want {
			t.Errorf("phase %q, up %v: got %v, want %v", tt.phase, tt.up, got, tt.want)
		}
	}
}

func TestExportGroups(t *testing.T) {
	one := func(group, name string, level level) []groupView {
		return []groupView{{Name: group, Exports: []exported{{name, level}}}}
	}
	late, early := member("a", 0, 2, "1", "h", "1"), member("a", 1, 1, "2", "h", "2")
	for _, tt := range []struct {
		name    string
		members []memberView
		groups  []groupView
		want    map[string][]string // `group/name` → values
	}{
		{"in the order in which they came", []memberView{late, early}, one("a", "host_port", levelComponent), map[string][]string{"a/host_port": {"h:2", "h:1"}}},
		{"of the application one", []memberView{late, early}, one("a", "host_port", levelApplication), map[string][]string{"a/host_port": {"h:2"}}},
		{"nobody has it", []memberView{late}, one("a", "other", levelComponent), map[string][]string{}},
		{"an empty value is one", []memberView{{Exports: map[string]string{"A.b": ""}, Phase: registry.PhaseReady, Up: true}}, one("A", "b", levelComponent), map[string][]string{"a/b": {""}}},
		{
			"cases are one group",
			[]memberView{{Exports: map[string]string{"A.x": "1", "a.y": "2"}, Phase: registry.PhaseReady, Up: true}},
			append(one("A", "x", levelComponent), one("a", "y", levelComponent)...),
			map[string][]string{"a/x": {"1"}, "a/y": {"2"}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := map[string][]string{}
			for group, g := range (View{Members: tt.members, Groups: tt.groups}).exports() {
				if group == logDirs || group == workDirs {
					continue
				}
				for name, entries := range g.Entries {
					for _, e := range entries {
						got[group+"/"+name] = append(got[group+"/"+name], e.Value)
					}
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

// Slider keeps 40 folders; of more, those of the newest containers.
func TestFoldersAreBounded(t *testing.T) {
	var v View
	for i := range 50 {
		v.Members = append(v.Members, member("worker", i, i, "", "h", "1"))
	}
	for _, group := range []string{logDirs, workDirs} {
		entries := v.exports()[group].Entries["worker"]
		if len(entries) != mostFolders || !strings.HasSuffix(entries[0].Value, "worker-10") {
			t.Errorf("%s: got %d from %q, want %d from worker-10", group, len(entries), entries[0].Value, mostFolders)
		}
	}
}
