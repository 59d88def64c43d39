package plan

import (
	"bytes"
	"encoding/json"
)

// JSON is the plan as `muster plan` prints it and golden files hold it: indented, with a newline at the end, always the
// same bytes for the same plan.
func (p Plan) JSON() []byte { return encode(p) }

// List is several plans as `muster plan` prints them.
type List struct {
	Version int    `json:"version"`
	Plans   []Plan `json:"plans"`
	// Launcher is that of all of them.
	Launcher *Launcher `json:"launcher,omitempty"`
}

// JSON is the list in the form of Plan.JSON.
func (l List) JSON() []byte { return encode(l) }

// encode keeps `<`, `>` and `&` readable: commands are full of them.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		panic("plan: encode: " + err.Error())
	}
	return b.Bytes()
}
