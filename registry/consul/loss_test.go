package consul

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// A loss is told when two looks in turn found it, once, and so is its end.
func TestReportLoss(t *testing.T) {
	told := make(chan string, 8)
	m := newMailbox(func(e registry.Event) { told <- strings.TrimPrefix(fmt.Sprintf("%T", e), "registry.") })
	var said strings.Builder
	j := &joining{gang: &gang{Client: &Client{log: slog.New(slog.NewTextHandler(&said, nil))}, mail: m}}
	here, gone := conductor.Wait{Why: "held"}, conductor.Vanished{Why: "2 agents live here"}
	for _, d := range []conductor.Admission{gone, here, gone, gone, gone, here, here} {
		j.reportLoss(d)
	}
	for _, want := range []string{"DataLost", "Reachable"} {
		select {
		case got := <-told:
			if got != want {
				t.Errorf("told %s, want %s", got, want)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s was not told", want)
		}
	}
	m.close()
	if len(told) > 0 || strings.Count(said.String(), "WARN") != 1 {
		t.Errorf("told more: %d; said %s", len(told), &said)
	}
}
