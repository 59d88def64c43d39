// Package page drives the page of muster ui as a person does, in a real Chromium, while a real gang trains on three
// hosts: network namespaces with a real Consul.
//
//	go test ./tests/page -update    takes the pictures in doc/img anew
package page

import (
	"encoding/json"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/binary"
)

// watchdog ends a wait that has gone wrong; it is part of no promise.
const watchdog = 60 * time.Second

var update = flag.Bool("update", false, "take the pictures in doc/img anew")

// muster is the binary under test. Set before the first test, never after.
var muster string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(binary.Main(func(built string) int {
		muster = built
		return m.Run()
	}))
}

// object is a JSON object of a package's file, and schema what its configuration names.
type object = map[string]any

const schema = "http://example.org/specification/v2.0.0"

// lay is the text of such a file.
func lay(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
