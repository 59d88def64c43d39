package appdef_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/muster-agent/muster/appdef"
)

// A YAML document has the values that a reader of JSON knows; what is no such document is named with its line.
func TestReadYAML(t *testing.T) {
	const bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
		"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n"
	for _, tt := range []struct{ in, want, problem string }{
		{"a: 1\nb: [1.0, 1.50, 1e-7, 0x10, true, null, ~, '2', 2021-01-01, yes]\n", `{"a":1,"b":[1,1.5,1e-7,16,true,null,null,"2","2021-01-01","yes"]}`, ""},
		{"a: |\n  x\n  y\nb: >-\n  x\n  y\n", `{"a":"x\ny\n","b":"x y"}`, ""},
		{"base: &b {x: 1, y: 2}\nc: {<<: *b, y: 3}\nd: *b\n", `{"base":{"x":1,"y":2},"c":{"x":1,"y":3},"d":{"x":1,"y":2}}`, ""},
		{`{"a": [1, {"b": "c"}]}`, `{"a":[1,{"b":"c"}]}`, ""},
		{"a: .inf\n", `{"a":".inf"}`, ""},
		{"a: 1\na: 2\n", "", "f#/a at line 2"},
		{"c: {<<: text, y: 3}\n", "", "<< with a value that is no object"},
		{"c: {<<: [{x: 1}, 2], y: 3}\n", "", "<< with a value that is no object"},
		{"a: [1\nb: 2\n", "", "a document that cannot be read"},
		{"a: 1\n---\nb: 2\n", "", "a second document"},
		{"a: !x y\n", "", "the tag !x"},
		{"? [a]\n: 1\n", "", "a key that is no text"},
		{bomb, "", "more than 200000 values"},
		{"a: &a [*a]\n", "", "more than 100 levels"},
		{strings.Repeat("[", 200) + strings.Repeat("]", 200), "", "more than 100 levels"},
		{"", "", "a document that ends before its first value"},
	} {
		node, found := appdef.ReadYAML("f", []byte(tt.in))
		if tt.problem != "" {
			if len(found) == 0 || !strings.Contains(found[0].String(), strings.Split(tt.problem, " at line ")[0]) {
				t.Errorf("%.60q: got %v, want %s", tt.in, found, tt.problem)
			}
			continue
		}
		if len(found) > 0 || node == nil {
			t.Errorf("%q: %v", tt.in, found)
			continue
		}
		got, err := json.Marshal(node.Value())
		if err != nil || string(got) != tt.want {
			t.Errorf("%q: got %s, %v, want %s", tt.in, got, err, tt.want)
		}
	}
}
