package appdef

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDigestSeesTheDefinitionOnly(t *testing.T) {
	base := Digest(twoRoles())
	same := map[string]func(a *App){
		"counts":   func(a *App) { *a = a.WithCounts(map[string]int{"ps": 0, "worker": 9}) },
		"user":     func(a *App) { a.Components[0].Limits.User = "1000"; a.Config["muster.user"] = "1000" },
		"origins":  func(a *App) { a.Origins = map[string]string{"x": "y"} },
		"places":   func(a *App) { a.Places = map[string]Place{"x": {}} },
		"warnings": func(a *App) { a.Warnings = Problems{{}} },
		"vars":     func(a *App) { a.Vars = map[string]string{"ZK_HOST": "z"} },
		"the why":  func(a *App) { a.Settings.FrameworkWhy = "because" },
		"an equal map": func(a *App) {
			a.Config = maps.Clone(a.Config)
		},
	}
	for name, change := range same {
		a := twoRoles()
		change(&a)
		if Digest(a) != base {
			t.Errorf("%s changes the digest", name)
		}
	}
	other := map[string]func(a *App){
		"name":          func(a *App) { a.Name = "x" },
		"a value":       func(a *App) { a.Config["site.global.x"] = "y" },
		"memory":        func(a *App) { a.Components[0].Limits.MemoryMB = 7 },
		"command":       func(a *App) { a.Components[0].Settings.Command = "true" },
		"order":         func(a *App) { a.Components[0], a.Components[1] = a.Components[1], a.Components[0] },
		"written scope": func(a *App) { a.Components[0].Settings.Restart.Explicit = true },
		"kept":          func(a *App) { a.Kept = map[string]any{"m": 1} },
	}
	for name, change := range other {
		a := twoRoles()
		change(&a)
		if Digest(a) == base {
			t.Errorf("%s does not change the digest", name)
		}
	}
}

func TestDigestLeavesTheAppAlone(t *testing.T) {
	a := twoRoles()
	a.Config["muster.user"], a.Components[0].Limits.User = "1", "1"
	Digest(a)
	if a.Config["muster.user"] != "1" || a.Components[0].Limits.User != "1" || a.Components[0].Settings.Restart.Scope != ScopeInstance {
		t.Errorf("changed: %+v", a.Components[0])
	}
}

// Law: what is decoded is what was encoded, counts aside, and has the same digest.
func TestEncodeDecode(t *testing.T) {
	a := twoRoles()
	text := "--fast"
	a.Components[0].Settings.TFArgs = &text
	a.Components[0].Settings.Env = map[string]string{"A": "<&>\u2028"}
	a.Kept = map[string]any{"appConfig#/metadata": map[string]any{"n": "1", "list": []any{true, nil, "x"}}}
	a.Vars = nil
	def, err := Encode(a)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := Encode(a)
	if def != again {
		t.Error("two encodings of one app differ")
	}
	got, err := Decode(def)
	if err != nil {
		t.Fatal(err)
	}
	if Digest(got) != Digest(a) {
		t.Error("the digest changes on the way")
	}
	if got.Components[1].Instances != 0 {
		t.Errorf("counts travel: %d", got.Components[1].Instances)
	}
	got = got.WithCounts(a.Counts())
	a.Origins, a.Settings.FrameworkWhy = nil, ""
	if diff := cmp.Diff(got, a); diff != "" {
		t.Errorf("got -, want +:\n%s", diff)
	}
}

func TestDecodeRefusesRubbish(t *testing.T) {
	for _, def := range []string{"", "!", "aGVsbG8=", "H4sIAAAAAAAA/wAAAP//AQAA//8AAAAAAAAAAA=="} {
		if _, err := Decode(def); err == nil {
			t.Errorf("Decode(%q): want an error", def)
		}
	}
}
