package appdef

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What each component reads of a port that several name, by what their values say. The rules are Slider's.
func TestPortTexts(t *testing.T) {
	for _, test := range []struct {
		name               string
		global             string            // of site.d.k, for all
		own                map[string]string // by component, over it
		defaults           bool              // the value is a default of the package, not of appConfig
		store, front, back string
	}{
		{name: "shared", global: "${store.ALLOCATED_PORT}", store: "own0", front: "store0", back: "store0"},
		{name: "shared, with a default", global: "h:${store.ALLOCATED_PORT}{DEFAULT_80}/x", store: "h:own0/x", front: "h:store0/x", back: "h:store0/x"},
		{
			name: "per container", global: "${store.ALLOCATED_PORT}{PER_CONTAINER}",
			store: "own0", front: "0", back: "0",
		},
		{
			name: "per container, and the reader does not say so", global: "${store.ALLOCATED_PORT}{PER_CONTAINER}",
			own:   map[string]string{"front": "${store.ALLOCATED_PORT}"},
			store: "own0", front: "store0", back: "0",
		},
		{
			name: "three in one value", global: "${store.ALLOCATED_PORT},${front.ALLOCATED_PORT},${back.ALLOCATED_PORT}",
			store: "own0,front0,back0", front: "store0,own0,back0", back: "store0,front0,own0",
		},
		{
			name: "several of one", global: "${store.ALLOCATED_PORT} ${store.ALLOCATED_PORT}{DEFAULT_1}",
			store: "own0 own1", front: "store0 store1", back: "store0 store1",
		},
		{
			name: "nobody claims it", own: map[string]string{"front": "${store.ALLOCATED_PORT}", "store": "80"},
			store: "-", front: "0", back: "-",
		},
		{
			name: "nobody claims it, beside an own one", own: map[string]string{"front": "${store.ALLOCATED_PORT} ${front.ALLOCATED_PORT}"},
			store: "-", front: "${store.ALLOCATED_PORT} own0", back: "-",
		},
		{name: "placeholders stay", global: "${USER}:${store.ALLOCATED_PORT}", store: "${USER}:own0", front: "${USER}:store0", back: "${USER}:store0"},
		{name: "a value of its own wins", global: "${store.ALLOCATED_PORT}", own: map[string]string{"front": "80"}, store: "own0", front: "-", back: "store0"},
		{name: "a default of the package", global: "${store.ALLOCATED_PORT}", defaults: true, store: "own0", front: "store0", back: "store0"},
		{name: "malformed", global: "${store.ALLOCATED_PORT}{DEFAULT_x}", store: "-", front: "0", back: "0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var a App
			for _, name := range []string{"store", "front", "back"} {
				c := Component{Name: name, Config: map[string]string{}}
				if test.global != "" && !test.defaults {
					c.Config["site.d.k"] = test.global
				}
				if own, ok := test.own[name]; ok {
					c.Config["site.d.k"] = own
				}
				a.Components = append(a.Components, c)
			}
			if test.defaults {
				a.Defaults = map[string]map[string]string{"d": {"k": test.global}}
			}
			own := func(_ string, n int) string { return fmt.Sprint("own", n) }
			peer := func(p PeerPort) string { return fmt.Sprint(p.Component, p.N) }
			got := map[string]string{}
			for _, c := range a.Components {
				got[c.Name] = "-"
				if text, ok := a.PortTexts(c.Name, own, peer)["d.k"]; ok {
					got[c.Name] = text
				}
			}
			want := map[string]string{"store": test.store, "front": test.front, "back": test.back}
			if !maps.Equal(got, want) {
				t.Error(cmp.Diff(got, want))
			}
		})
	}
}
