package appdef

import (
	"slices"
	"testing"
)

func TestDifferences(t *testing.T) {
	app := func(change func(*App)) App {
		a := App{Name: "a", Config: map[string]string{"site.global.x": "1"}, Components: []Component{{
			Name: "worker", Instances: 2, Config: map[string]string{"site.global.x": "1", "muster.command": "run"},
		}}}
		change(&a)
		return a
	}
	for _, c := range []struct {
		name   string
		change func(*App)
		want   []string
	}{
		{"nothing", func(*App) {}, nil},
		{"a count is no difference", func(a *App) { a.Components[0].Instances = 9 }, nil},
		{"a key of the app", func(a *App) { a.Config["site.global.x"] = "2" }, []string{"site.global.x"}},
		{"a key of a component, and what follows from it", func(a *App) {
			a.Components[0].Config["muster.command"] = "stop"
			a.Components[0].Settings.Command = "stop"
		}, []string{"muster.command of worker"}},
		{"a new key", func(a *App) { a.Components[0].Config["muster.restart"] = "gang" }, []string{"muster.restart of worker"}},
		{"no key", func(a *App) { a.Name = "b" }, []string{"/name"}},
		{"another component", func(a *App) { a.Components = append(a.Components, Component{Name: "ps"}) }, []string{"/components"}},
	} {
		if got := Differences(app(func(*App) {}), app(c.change)); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
