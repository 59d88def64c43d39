package status

import (
	"encoding/json"
	"reflect"
	"testing"
)

// The rows of a listing and the answer of GET /v1/state are flat, however the values are grouped here.
func TestInstanceIsFlat(t *testing.T) {
	const row = `"version":1,"instance":"text","component":"text","index":1,"rank":1,"role":"text","phase":"text",` +
		`"since":"0001-01-01T00:00:00Z","host":"text","pid":1,"ports":{},"exports":{},"dns_name":"text","gpus":[{"id":"text","model":"text"}],"generation":1,` +
		`"attempt":1,"restarts":1,"started":"0001-01-01T00:00:00Z","failures":1,"progress":1,"checkpoint_step":1,"resumed_step":1,"no_output_since":"0001-01-01T00:00:00Z","hold":{"until":"0001-01-01T00:00:00Z"},"exit":1,"exit_info":{"code":1,"signal":1,"oom":true,"peak":1,` +
		`"limit":1,"at":"0001-01-01T00:00:00Z","message":"text","last_output":"text"},"pai":{"code":1,"phrase":"text","type":"text","reaction":"text"},` +
		`"use":{"peak_memory":1,"cores":1,"gpus":1,"limits":{"memory":1,"cores":1}},` +
		`"unenforced":["text"],"cause":"text","outage":{"since":"0001-01-01T00:00:00Z","cut_off":1,"members":1,"fenced":true,` +
		`"until":"0001-01-01T00:00:00Z"},"waits":[{"instance":"text","since":"0001-01-01T00:00:00Z",` +
		`"until":"0001-01-01T00:00:00Z","mass":true}],"sides":[{"name":"text","pid":1,"restarts":1}],"last_end":"text",` +
		`"conducts":true,"registry_unreachable_since":"0001-01-01T00:00:00Z","warnings":[{"kind":"text","text":"text",` +
		`"since":"0001-01-01T00:00:00Z"}]`
	var in Instance
	fill(reflect.ValueOf(&in).Elem())
	holds(t, in, "{"+row+"}")
	var state State
	fill(reflect.ValueOf(&state).Elem())
	state.Limits = map[string]any{}
	holds(t, state, "{"+row+`,"plan_digest":"text","limits":{},"app":"text","run":"text","inc":"text","log_dir":"text"}`)
}

func holds(t *testing.T, v any, want string) {
	t.Helper()
	got, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// fill gives every field a value that is not left out.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("text")
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	default:
		panic("a field of another kind: " + v.Kind().String())
	}
}
