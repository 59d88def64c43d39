package consul

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// A loss that lasts is told, once, and so is its end; looks at several indexes in one round are one look.
func TestReportLoss(t *testing.T) {
	one, two := registry.Instance{Component: "worker", Index: 0}, registry.Instance{Component: "worker", Index: 1}
	here, gone := conductor.Wait{Why: "held"}, conductor.Vanished{Why: "2 agents live here"}
	type look struct {
		in registry.Instance
		d  conductor.Admission
	}
	for name, tt := range map[string]struct {
		rounds [][]look
		want   []string
	}{
		"a founding":           {[][]look{{{one, gone}, {two, gone}}, {{one, here}, {two, here}}}, nil},
		"one index":            {[][]look{{{one, gone}}, {{one, gone}}, {{one, gone}}, {{one, here}}, {{one, here}}}, []string{"DataLost", "Reachable"}},
		"one of two":           {[][]look{{{one, gone}, {two, here}}, {{one, gone}, {two, here}}}, []string{"DataLost"}},
		"both, one comes back": {[][]look{{{one, gone}, {two, gone}}, {{one, gone}, {two, gone}}, {{one, here}, {two, gone}}}, []string{"DataLost"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var told []string
			m := newMailbox(func(e registry.Event) { told = append(told, strings.TrimPrefix(fmt.Sprintf("%T", e), "registry.")) })
			var said strings.Builder
			j := &joining{
				gang:      &gang{Client: &Client{log: slog.New(slog.NewTextHandler(&said, nil))}, mail: m},
				suspected: map[registry.Instance]time.Time{},
			}
			for _, round := range tt.rounds {
				for _, l := range round {
					j.reportLoss(l.in, l.d)
				}
				time.Sleep(standbyLow)
			}
			synctest.Wait()
			m.close()
			if !slices.Equal(told, tt.want) || strings.Count(said.String(), "WARN") != min(1, len(tt.want)) {
				t.Errorf("%s: told %v, want %v; said %s", name, told, tt.want, &said)
			}
		})
	}
}
