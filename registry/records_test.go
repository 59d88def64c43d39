package registry_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/muster-agent/muster/registry"
)

// memberText and directiveText are records as agents have written them since version 1: those of another version read them.
const memberText = `{"run":"r1","inc":"b","was":"a","addr":"10.0.0.1","address":"10.0.0.1:2000","api":"/run/a.sock","peer":"10.0.0.1:21",` +
	`"machine":"m","boot":"b1","pidns":"n","pid":7,"start":70,"slot":"s","cgroup":"/muster","guard":{"pid":8,"start":71},"digest":"d","gen":3,"up":3,"ph":"ready",` +
	`"host":"h1","ports":{"http":2000},"exports":{"g.n":"v"},"attempt":2,"budget":{"used":1,"at":["2026-01-02T03:04:05Z"],"step":7,"anew":true},` +
	`"exit":{"gen":2,"code":1,"class":"app-error","why":"w","final":true,"passing":true,"at":"2026-01-02T03:04:05Z"},"launcher":"yarn","container_id":"c1",` +
	`"since":"2026-01-02T03:04:05Z","build":"1.0.0","proto":1,"unenforced":["gpu"],"saved":{"seq":1,"to":["/o"],"files":2,"bytes":3,"failed":"f","left_out":["o/p"]},` +
	`"found":[{"kind":"unreachable","about":{"c":"ps","i":0},"inc":"x","addr":"h2:1","why":"w","since":"2026-01-02T03:04:05Z"}],` +
	`"here":{"gen":2,"shared":true,"steps":[1],"unknown":true},"log_dir":"/l","work_dir":"/w"}`

const directiveText = `{"run":"r1","gen":3,"act":"run","seq":9,"by":"b","counts":{"worker":2},"target":{"worker":3},` +
	`"roster":{"id":"3-abc","chunks":1,"bytes":2,"sha256":"s"},"resume":7,"anew":"why","budget":{"used":1},"retries":{"used":1,"free":2,"gen":3},"row":2,"rest":4,` +
	`"released":["ps"],"why":"w","first":"worker-0","stop_grace":5,` +
	`"verdict":{"version":1,"run":"r1","outcome":"failed","class":"app-error","cause":"c","first":"worker-0","exit":{"gen":3,"code":1},"advice":"a","retry":true,` +
	`"generation":3,"by":"stop","at":"2026-01-02T03:04:05Z"},"save":{"seq":1,"stamp":"2026","asks":["i"]},"at":"2026-01-02T03:04:05Z","adopted":true}`

// TestRecordsKeepTheirJSON: however the values are grouped, a record that exists is read whole and written as it was.
func TestRecordsKeepTheirJSON(t *testing.T) {
	for text, into := range map[string]any{
		memberText: new(registry.Member), directiveText: new(registry.Directive),
		`{"run":"","inc":"","addr":"","machine":"","boot":"","pidns":"","pid":0,"start":0,"digest":"","gen":0,"ph":"","attempt":0,"since":"0001-01-01T00:00:00Z"}`: new(registry.Member),
		`{"run":"","gen":0,"act":"","seq":0,"by":"","counts":null,"at":"0001-01-01T00:00:00Z"}`:                                                                    new(registry.Directive),
	} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(into); err != nil || string(got) != text {
			t.Errorf("%T: got %s, %v\nwant %s", into, got, err, text)
		}
	}
}

// TestRecordTextsAreWhole: no field of these records is missing above.
func TestRecordTextsAreWhole(t *testing.T) {
	for text, of := range map[string]reflect.Type{memberText: reflect.TypeFor[registry.Member](), directiveText: reflect.TypeFor[registry.Directive]()} {
		var have map[string]any
		if err := json.Unmarshal([]byte(text), &have); err != nil {
			t.Fatal(err)
		}
		for _, f := range reflect.VisibleFields(of) {
			if f.Anonymous || f.Tag.Get("json") == "-" {
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if _, ok := have[name]; !ok {
				t.Errorf("%s.%s: no %q in the text", of, f.Name, name)
			}
		}
	}
}
