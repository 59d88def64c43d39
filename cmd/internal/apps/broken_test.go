package apps

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// Who may write to a registry can put anything there. The others' apps are listed all the same, and it is named.
func TestBrokenRecords(t *testing.T) {
	s := consulserver.Start(t, consulserver.Options{})
	address, err := registry.ParseAddress(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	type set struct {
		Verb, Key string
		Value     []byte
	}
	var puts []map[string]set // Consul takes any byte in the keys of a transaction
	for key, value := range map[string]string{
		"well/app": `{"run": "r1"}`, "well/directive": `{"seq": 1}`, "well/members/worker/0": "garbage",
		"garbage/app": "garbage", "garbage/directive": `{"seq": 1}`,
		"\x1b[2J/app": `{"run": "r1"}`, "\x1b[2J/directive": `{"seq": 1}`,
	} {
		puts = append(puts, map[string]set{"KV": {"set", "muster/" + key, []byte(value)}})
	}
	text, err := json.Marshal(puts)
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + strings.TrimPrefix(s.URL(), "consul://") + "/v1/txn"
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (&http.Client{Timeout: 30 * time.Second}).Do(r)
	if err != nil || answer.Body.Close() != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(answer, err)
	}
	var warned strings.Builder
	k := Lookup{Address: address, Named: true, Warn: &warned}
	rows, err := k.List(t.Context())
	if err != nil || len(rows) != 1 || rows[0].App != "well" {
		t.Errorf("got %v, %v", rows, err)
	}
	lines := strings.Count(warned.String(), "\n")
	for _, want := range []string{
		": read muster/garbage/app: invalid character 'g' looking for beginning of value: left out until it is mended or removed",
		": read muster/well/members/worker/0: invalid character", `: key muster/`,
	} {
		if !strings.Contains(warned.String(), want) {
			t.Errorf("got %q, want %q in it", warned.String(), want)
		}
	}
	if lines != 3 || strings.Contains(warned.String(), "\x1b") {
		t.Errorf("got %q", warned.String())
	}
	warned.Reset()
	f, err := k.App(t.Context(), "well")
	if err != nil || f.Run() != "r1" || strings.Count(warned.String(), "\n") != 1 {
		t.Errorf("got %+v, %v, %q", f.Registry, err, warned.String())
	}
}
