package registry

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files")

// term is a part of a sum of times.
type term struct {
	name string
	time.Duration
}

// moment is a time of the protocol as the sum that the page gives for it.
type moment struct {
	name, meaning string
	got           time.Duration
	sum           []term
}

func moments(t Times) []moment {
	return []moment{
		{"silent", "the session has ended if the registry works; the member asks its peers from here on", t.Silent(), []term{
			{"2 × session ttl", 2 * t.TTL}, {"renewal's time-out", t.Request}, {"margin", silenceMargin},
		}},
		{"fence", "a member without evidence of an outage stops its process", t.Fence(), []term{{"silent", t.Silent()}, {"two questions and more", fenceAfter}}},
		{"gone", "its process has ended; the guard ends it then at the latest", t.Gone(), []term{
			{"fence", t.Fence()}, {"evidence holds", EvidenceValid}, {"stop", FenceStop},
		}},
		{"outage", "a process is stopped whatever the peers say", t.Outage(), []term{
			{"lost mass", t.LostMass}, {"− stop", -FenceStop}, {"− evidence holds", -EvidenceValid}, {"− margin of clocks", -clockMargin},
		}},
		{"expiry", "a dead agent may still seem alive", t.Expiry(), []term{{"3 × session ttl", 3 * t.TTL}}},
	}
}

// The sums that the page gives are those that the code computes.
func TestMoments(t *testing.T) {
	for _, times := range []Times{DefaultTimes(), {TTL: 17 * time.Second, Renew: 5 * time.Second, Request: 4 * time.Second, LostMass: time.Hour}} {
		for _, m := range moments(times) {
			var sum time.Duration
			for _, part := range m.sum {
				sum += part.Duration
			}
			if sum != m.got {
				t.Errorf("%s: the page says %s, the code %s", m.name, sum, m.got)
			}
		}
	}
}

// The tables of times in doc/protocol.md are those of the code.
func TestProtocolPage(t *testing.T) {
	const file = "../doc/protocol.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- times: make golden -->\n", "<!-- end of times -->"
	before, rest, ok1 := strings.Cut(string(text), begin)
	got, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no %q", file, begin)
	}
	want := timeTables()
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("doc/protocol.md is not the code (make golden): -want +got\n%s", diff)
	}
}

func timeTables() string {
	d := DefaultTimes()
	var b strings.Builder
	b.WriteString("| silence | is | what |\n|---|---|---|\n")
	for _, m := range moments(d) {
		var parts []string
		for _, p := range m.sum {
			parts = append(parts, fmt.Sprintf("%s %s", p.name, p.Abs()))
		}
		fmt.Fprintf(&b, "| %s: %s | %s | %s |\n", m.name, m.got, strings.Join(parts, ", "), m.meaning)
	}
	b.WriteString("\n| time | default | must be | because |\n|---|---|---|---|\n")
	for _, r := range d.rules() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.name, r.got, r.want, r.hint)
	}
	return b.String()
}
