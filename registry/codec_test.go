package registry_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/registry"
)

// rewritten are the records that agents read, change and write back.
var rewritten = map[string]any{
	memberText: registry.Member{}, directiveText: registry.Directive{},
	`{"proto":{"min":1,"now":2},"run":"r","times":{"ttl":10,"lost":60,"lost_mass":600,"fence":{"stop":20}}}`: registry.AppRecord{},
	`{"gen":1,"inc":"i","steps":[{"step":1,"uri":"u"},{"step":2}],"bad":[{"uri":"u"}]}`:                      registry.Checkpoint{},
	`{"kind":"stop","id":"i","by":"stop","args":{"who":"x"}}`:                                                registry.Ask{},
}

// again is what is left of a record when an agent of this build has rewritten it.
func again(text []byte, of any) ([]byte, error) {
	switch of.(type) {
	case registry.Member:
		return rewrite[registry.Member](text)
	case registry.Directive:
		return rewrite[registry.Directive](text)
	case registry.AppRecord:
		return rewrite[registry.AppRecord](text)
	case registry.Checkpoint:
		return rewrite[registry.Checkpoint](text)
	case registry.Ask:
		return rewrite[registry.Ask](text)
	}
	panic("no record")
}

func rewrite[T any](text []byte) ([]byte, error) {
	v, err := registry.Decode[T](text)
	if err != nil {
		return nil, err
	}
	return registry.Encode(v)
}

// maps of the records: their names are data and not fields. An instance is a name, too.
var data = []string{"counts", "target", "ports", "exports", "args", "about"}

// extend adds a member to each object of a record.
func extend(v any) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			extend(one)
		}
	case map[string]any:
		for name, one := range v {
			if !strings.Contains(strings.Join(data, " "), name) {
				extend(one)
			}
		}
		v["novel"] = map[string]any{"<": []any{json.Number("1.50"), nil, "é"}}
	}
}

// TestUnknownMembersSurvive: what a later build adds to any object of a record is there after a rewrite.
func TestUnknownMembersSurvive(t *testing.T) {
	for text, of := range rewritten {
		var tree any
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&tree); err != nil {
			t.Fatal(err)
		}
		extend(tree)
		later, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		rewritten, err := again(later, of)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(plain(t, later), plain(t, rewritten), cmp.Transformer("zero", dropZero)); diff != "" {
			t.Errorf("%T (-written +rewritten):\n%s", of, diff)
		}
	}
}

func plain(t testing.TB, text []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// dropZero leaves out the members that a record has although they are zero.
func dropZero(m map[string]any) map[string]any {
	kept := map[string]any{}
	for name, v := range m {
		if v != nil && v != json.Number("0") && v != "" && v != "0001-01-01T00:00:00Z" {
			kept[name] = v
		}
	}
	return kept
}

// TestCopiesKeepUnknownMembers: they are part of a value and travel with it; a new value has none.
func TestCopiesKeepUnknownMembers(t *testing.T) {
	d, err := registry.Decode[registry.Directive]([]byte(`{"gen":1,"budget":{"used":1,"x":2},"roster":{"id":"1-a","x":3},"x":1}`))
	if err != nil {
		t.Fatal(err)
	}
	next := d
	next.Gen, next.Roster = 2, registry.RosterRef{ID: "2-b"}
	next.Budget.Used++
	text, err := registry.Encode(next)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		X      int
		Budget struct{ Used, X int }
		Roster struct {
			ID string
			X  int
		}
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.X != 1 || got.Budget.X != 2 || got.Budget.Used != 2 || got.Roster.X != 0 || got.Roster.ID != "2-b" {
		t.Errorf("%s", text)
	}
}

// TestEachRecordKeepsUnknownMembers: no struct of a record lacks the field for them, and no map has structs.
func TestEachRecordKeepsUnknownMembers(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var look func(reflect.Type, bool)
	look = func(of reflect.Type, embedded bool) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice:
			look(of.Elem(), false)
		case reflect.Map:
			if k := of.Elem().Kind(); k == reflect.Struct || k == reflect.Pointer {
				t.Errorf("%s: the codec does not look into maps", of)
			}
		case reflect.Struct:
			if seen[of] || of == reflect.TypeFor[time.Time]() || of == reflect.TypeFor[registry.Instance]() {
				return
			}
			seen[of] = true
			if f, ok := of.FieldByName("Later"); !embedded && (!ok || len(f.Index) != 1 || f.Tag.Get("json") != "-") {
				t.Errorf("%s has no field Later", of)
			}
			for f := range of.Fields() {
				look(f.Type, f.Anonymous)
			}
		default:
		}
	}
	for _, v := range rewritten {
		look(reflect.TypeOf(v), false)
	}
}

// TestRecordsBeforeProto: records of builds before the first span are of version 1.
func TestRecordsBeforeProto(t *testing.T) {
	a, err := registry.Decode[registry.AppRecord]([]byte(`{"version":1,"run":"r","times":{"ttl":10,"lost":60,"lost_mass":600}}`))
	if err != nil || a.Proto.OrFirst() != (registry.Proto{Min: 1, Now: 1}) {
		t.Errorf("%+v, %v", a, err)
	}
	if differ := registry.DefaultTimes().Agreed().Differ(a.Times); len(differ) != 0 {
		t.Errorf("times differ: %v", differ)
	}
}

// TestAdmits: who may be mixed with whom.
func TestAdmits(t *testing.T) {
	for _, c := range []struct {
		run, build registry.Proto
		want       bool
	}{
		{registry.Proto{}, registry.Proto{Min: 1, Now: 1}, true},
		{registry.Proto{Min: 1, Now: 1}, registry.Proto{Min: 1, Now: 3}, true},
		{registry.Proto{Min: 1, Now: 3}, registry.Proto{Min: 1, Now: 1}, true},
		{registry.Proto{Min: 2, Now: 3}, registry.Proto{Min: 1, Now: 1}, false},
		{registry.Proto{Min: 2, Now: 3}, registry.Proto{}, false},
		{registry.Proto{}, registry.Proto{Min: 2, Now: 3}, false},
	} {
		if got := c.run.Admits(c.build); got != c.want {
			t.Errorf("a run of %s admits a build of %s: %t", c.run, c.build, got)
		}
	}
}

// TestFixedTimesAreAgreedOn: a build whose constants differ is seen, and told which.
func TestFixedTimesAreAgreedOn(t *testing.T) {
	ours := registry.DefaultTimes().Agreed()
	fence := reflect.TypeFor[registry.FenceTimes]()
	for i := range fence.NumField() {
		if fence.Field(i).Type.Kind() != reflect.Float64 {
			continue
		}
		theirs := ours
		reflect.ValueOf(&theirs.Fence).Elem().Field(i).SetFloat(77)
		differ := ours.Differ(theirs)
		if len(differ) != 1 || !differ[0].Fixed || differ[0].Want != 77 {
			t.Errorf("%s: %v", fence.Field(i).Name, differ)
		}
	}
	if differ := ours.Differ(ours); len(differ) != 0 {
		t.Errorf("equal times differ: %v", differ)
	}
}

// FuzzRewrite: a rewrite keeps what this build does not know, and a second one changes nothing.
func FuzzRewrite(f *testing.F) {
	for text := range rewritten {
		f.Add([]byte(text))
		f.Add([]byte(strings.Replace(text, "{", `{"novel":[1.50,"<"],"Run":"x",`, 1)))
	}
	f.Add([]byte(`{"budget":{"x":1},"BUDGET":null,"budget":{"y":2},"verdict":{"exit":{"z":"\u2028"}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, of := range rewritten {
			once, err := again(text, of)
			if err != nil {
				continue // it is no such record
			}
			if twice, err := again(once, of); err != nil || !bytes.Equal(once, twice) {
				t.Errorf("%T rewritten: %s\nagain: %s, %v", of, once, twice, err)
			}
			var was, is map[string]json.RawMessage
			if json.Unmarshal(text, &was) != nil || json.Unmarshal(once, &is) != nil {
				continue
			}
			for name, value := range was {
				if !known(reflect.TypeOf(of), name) && !cmp.Equal(plain(t, value), plain(t, is[name])) {
					t.Errorf("%T: %q was %s and is %s", of, name, value, is[name])
				}
			}
		}
	})
}

// known tells whether a record has a field of that name.
func known(of reflect.Type, name string) bool {
	for _, f := range reflect.VisibleFields(of) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag != "" && tag != "-" && strings.EqualFold(tag, name) {
			return true
		}
	}
	return false
}
