package sandbox

import (
	"errors"
	"strings"
	"testing"
)

func TestDecide(t *testing.T) {
	for _, tt := range []struct {
		name              string
		container, cgroup string // what keeps from them
		root, image       bool
		want, why         string
	}{
		{"auto", "", "", true, false, "container", "root"},
		{"auto", "", "", false, false, "container", "delegated"},
		{"auto", "no namespaces", "", true, false, "cgroup", "no container: no namespaces"},
		{"auto", "", "read-only", true, false, "process", "no cgroup: read-only"},
		{"auto", "", "read-only", false, true, "container", "an image needs one; no cgroup: read-only"},
		{"auto", "no namespaces", "", true, true, "cgroup", "no container: no namespaces"},
		{"auto", "no namespaces", "read-only", false, false, "process", "no container: no namespaces; no cgroup: read-only"},
		{"container", "", "read-only", true, false, "container", "--engine"},
		{"container", "no namespaces", "", true, false, "", "no namespaces"},
		{"cgroup", "no namespaces", "", true, false, "cgroup", "--engine"},
		{"cgroup", "", "read-only", true, false, "", "read-only"},
	} {
		s := Support{Container: tt.container, Cgroup: tt.cgroup}
		got, why, err := s.decide(tt.name, tt.root, tt.image)
		if err != nil {
			why = err.Error()
		}
		if got != tt.want || !strings.Contains(why, tt.why) || (err == nil) != (tt.want != "") {
			t.Errorf("%s with %+v: got %q because %q, want %q because %q", tt.name, s, got, why, tt.want, tt.why)
		}
	}
}

func TestChooseKnowsItsEngines(t *testing.T) {
	if _, err := Choose(t.Context(), "jail", false); !errors.Is(err, errNoSuchEngine) {
		t.Errorf("got %v, want %v", err, errNoSuchEngine)
	}
	if c, err := Choose(t.Context(), "process", false); err != nil || c.Engine.Name() != "process" {
		t.Errorf("got %+v, %v", c, err)
	}
}
