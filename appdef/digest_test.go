package appdef

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"reflect"
	"strings"
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

// noise is text that does not compress, the same for the same seed.
func noise(seed uint64, bytes int) string {
	raw := make([]byte, bytes*3/4)
	_, _ = rand.NewChaCha8([32]byte{byte(seed)}).Read(raw) // it never fails
	return base64.StdEncoding.EncodeToString(raw)
}

// A text of the global section stands in each component too. It is kept once.
func TestEncodeKeepsLongTextsOnce(t *testing.T) {
	a := twoRoles()
	long, other := noise(1, 80_000), noise(2, 80_000)
	a.Vars, a.Origins, a.Settings.FrameworkWhy = nil, nil, ""
	a.Config["muster.env.A"], a.Config["muster.env.B"], a.Config["muster.env.C"] = long, other, "\x000"
	a.Kept = map[string]any{"texts": []any{"\x00\x001", long, "\x00"}}
	for i := range a.Components {
		c := &a.Components[i]
		c.Config = maps.Clone(a.Config)
		c.Settings.Env = map[string]string{"A": long, "B": other, "C": "\x000"}
	}
	def, err := Encode(a)
	if err != nil {
		t.Fatal(err)
	}
	if len(def) > 2*80_000+10_000 {
		t.Errorf("%d bytes for two texts of 80,000", len(def))
	}
	back, err := Decode(def)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(back.WithCounts(a.Counts()), a); diff != "" {
		t.Errorf("got -, want +:\n%s", diff)
	}
}

func TestEncodeRefusesWhatIsTooLarge(t *testing.T) {
	for name, tt := range map[string]struct{ value, want string }{
		"that does not compress": {noise(3, 9<<20), "packed, want at most 8 MiB"},
		"that compresses":        {strings.Repeat("x", mostDecoded), "of JSON, want at most 64 MiB"},
	} {
		a := twoRoles()
		a.Config["muster.env.BIG"] = tt.value
		_, err := Encode(a)
		if _, ok := errors.AsType[*sizeError](err); !ok || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
		found := Validate(&a).Errors()
		if len(found) != 1 || !strings.Contains(found[0].String(), tt.want) || !strings.HasSuffix(found[0].Pointer, "muster.env.BIG") {
			t.Errorf("%s: %v", name, found)
		}
	}
}

func TestDecodeRefusesTextsThatAreNotThere(t *testing.T) {
	long := strings.Repeat("x", mostDecoded/4)
	for name, tree := range map[string]map[string]any{
		"no number":  {"name": "\x00x", "texts": []any{"a"}},
		"too high":   {"name": "\x001", "texts": []any{"a"}},
		"too much":   {"config": map[string]any{"a": "\x000", "b": "\x000", "c": "\x000", "d": "\x000", "e": "\x000"}, "texts": []any{long}},
		"not a list": {"name": "a", "texts": "a"},
	} {
		text, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := unfold(text, mostDecoded); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}

// sparse is an App with one element in each list and behind each pointer, all at their zero values: it shows which
// fields are in the JSON whatever their values.
func sparse(of reflect.Value) {
	switch of.Kind() {
	case reflect.Pointer:
		of.Set(reflect.New(of.Type().Elem()))
		sparse(of.Elem())
	case reflect.Slice:
		of.Set(reflect.MakeSlice(of.Type(), 1, 1))
		sparse(of.Index(0))
	case reflect.Struct:
		for i := range of.NumField() {
			if of.Type().Field(i).IsExported() {
				sparse(of.Field(i))
			}
		}
	default:
	}
}

// TestTheFirstFormStays: builds of all versions take the same digest in the form of the first. A new field of App is
// left out of the JSON at its default (omitempty), or has the protocol version that it came with (`proto:"2"`).
func TestTheFirstFormStays(t *testing.T) {
	var a App
	sparse(reflect.ValueOf(&a).Elem())
	for name, c := range map[string]struct {
		app  App
		want string
	}{
		"two roles":  {twoRoles(), "468dbed11511333fc2a393e410fffeb655e389ba524e7f681609ee9d3ebf4c60"},
		"all fields": {a, "ff418ec2e0297bb79ed08816f97eb7e0d5642dc6f97179de780ed54e639f846b"},
	} {
		if got := DigestIn(c.app, 1); got != c.want {
			t.Errorf("%s: got %s, want %s: a new field changes the digest of runs of older builds", name, got, c.want)
		}
	}
}

// TestLaterFieldsAreDropped: a form leaves out what came after it, wherever that is.
func TestLaterFieldsAreDropped(t *testing.T) {
	type inner struct {
		Old int `json:"old"`
		New int `json:"new" proto:"2"`
	}
	type embedded struct {
		Deep *inner `json:"deep"`
	}
	type outer struct {
		embedded
		List  []inner          `json:"list"`
		Named map[string]inner `json:"named"`
		Newer []inner          `json:"newer,omitempty" proto:"3"`
	}
	const text = `{"deep":{"old":1,"new":2},"list":[{"old":1,"new":2}],"named":{"a":{"old":1,"new":2}},"newer":[{"old":1}]}`
	for proto, want := range map[int]string{
		1: `{"deep":{"old":1},"list":[{"old":1}],"named":{"a":{"old":1}}}`,
		2: `{"deep":{"new":2,"old":1},"list":[{"new":2,"old":1}],"named":{"a":{"new":2,"old":1}}}`,
		3: `{"deep":{"new":2,"old":1},"list":[{"new":2,"old":1}],"named":{"a":{"new":2,"old":1}},"newer":[{"old":1}]}`,
	} {
		var tree any
		if err := json.Unmarshal([]byte(text), &tree); err != nil {
			t.Fatal(err)
		}
		dropLater(reflect.TypeFor[outer](), tree, proto)
		if got, err := json.Marshal(tree); err != nil || string(got) != want {
			t.Errorf("form %d: %s, %v, want %s", proto, got, err, want)
		}
	}
}
