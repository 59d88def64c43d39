package history

import (
	"cmp"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestHistory is the short form: gangs live through a schedule of what is over soon.
func TestHistory(t *testing.T) {
	runHistory(t, options{
		agents: 9, hosts: 3, length: 25 * time.Second, pace: time.Second, away: 4 * time.Second, settle: 2 * time.Minute, work: 4,
		faults: []string{"agent", "guard", "tree", "process", "term", "leader", "servers", "host", "blind", "late", "second", "cut"},
	})
}

// runHistory plays, and checks what came of it.
func runHistory(t *testing.T, o options) {
	t.Helper()
	if *checkFlag != "" {
		history, _, err := readHistory(*checkFlag, 0)
		if err != nil {
			t.Fatal(err)
		}
		judge(t, history)
		return
	}
	seed := cmp.Or(*seedFlag, rand.Uint64())
	if *faultsFlag != "" {
		o.faults = strings.Split(*faultsFlag, ",")
	}
	o.length, o.agents = cmp.Or(*lengthFlag, o.length), cmp.Or(*agentsFlag, o.agents)
	t.Logf("seed %d; again with -seed %d (the schedule is the same, what happens meanwhile is not)", seed, seed)
	judge(t, play(t, o, seed))
}

func judge(t *testing.T, history []event) {
	t.Helper()
	breaches := check(history)
	t.Logf("%d violations", len(breaches))
	for _, b := range breaches {
		t.Error(b)
	}
	succeeded := 0
	for _, v := range arrange(history).verdicts() {
		if v.Outcome == "succeeded" {
			succeeded++
		}
	}
	if succeeded == 0 {
		t.Error("no run has succeeded: this shows little")
	}
}
