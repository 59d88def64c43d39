package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/member"
	"github.com/muster-agent/muster/shim/status"
)

// What members have found of each other is told of whom it is about, wherever status is asked; what is over is not.
func TestFoundWarnings(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	memberOf := func(i int, live bool, found ...registry.Finding) consul.MemberStatus {
		return consul.MemberStatus{
			Instance: registry.Instance{Component: "w", Index: i}, Live: live,
			Member: registry.Member{Inc: fmt.Sprint("inc", i), Addr: fmt.Sprint("10.0.0.", i), Notes: registry.Notes{Found: found}},
		}
	}
	lost := func(i int, inc, why string, after time.Duration) registry.Finding {
		return registry.Finding{Kind: registry.NotReached, About: registry.Instance{Component: "w", Index: i}, Inc: inc, Addr: "127.0.1.1:7", Why: why, Since: at.Add(after)}
	}
	beside := registry.Finding{Kind: registry.NotApart, About: registry.Instance{Component: "w", Index: 1}, Inc: "inc1", Addr: "h1", Why: "w-0", Since: at}
	st := &consul.Status{Members: []consul.MemberStatus{
		memberOf(0, true, lost(3, "inc3", "connection refused", time.Second), lost(2, "older", "x", 0)),
		memberOf(1, true, lost(3, "inc3", "no answer", 0), beside),
		memberOf(2, true), memberOf(3, true),
		memberOf(4, false, lost(2, "inc2", "x", 0)), memberOf(5, true, lost(4, "inc4", "x", 0)),
	}}
	got := foundWarnings(st)
	if len(got) != 2 || len(got["w-3"]) != 1 || len(got["w-1"]) != 1 {
		t.Fatalf("got %v", got)
	}
	w := got["w-3"][0]
	want := "its agent cannot be reached at 127.0.1.1:7 by w-0 at 10.0.0.0 (connection refused), w-1 at 10.0.0.1 (no answer); " + member.ReachRemedy
	if w.Kind != member.WarnUnreachable || w.Text != want || !w.Since.Equal(at) {
		t.Errorf("got %+v, want %q", w, want)
	}
	if w := got["w-1"][0]; w.Kind != member.WarnTogether || !strings.HasPrefix(w.Text, "shares h1 with w-0, which ") {
		t.Errorf("got %+v", w)
	}
	if row := warned(status.Instance{Warnings: []status.Warning{{Kind: member.WarnTogether, Text: "own"}}}, got["w-1"]); len(row.Warnings) != 1 {
		t.Errorf("told twice: %v", row.Warnings)
	}
	if foundWarnings(nil) != nil {
		t.Error("no registry has said anything")
	}

	for i := range 9 {
		st.Members = append(st.Members, memberOf(10+i, true, lost(3, "inc3", "no answer", 0)))
	}
	if text := foundWarnings(st)["w-3"][0].Text; !strings.Contains(text, ", 6 others; ") {
		t.Errorf("many: %s", text)
	}
}
