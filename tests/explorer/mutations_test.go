//go:build !race

package explorer

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var record = flag.Duration("record", 0, "search this long for a story of each rule that has none, and write it into testdata")

// rules are all that can be taken away: the hooks, the checks of each transaction together, and the keys that it locks or deletes
// beside its own.
func rules() []rule {
	known := map[string]string{}
	for _, s := range large() {
		s.shapes = known
		for seed := range uint64(5) {
			s.walk(seed, *length)
		}
	}
	var all []rule
	for _, h := range hooks {
		all = append(all, rule{Hook: h})
	}
	ops := map[rule]bool{}
	for text, name := range known {
		for one := range strings.SplitSeq(text, ", ") {
			verb, key, _ := strings.Cut(one, " ")
			switch {
			case strings.HasPrefix(verb, "check-"), verb == verbCAS:
				ops[rule{Txn: name, Verb: anyCheck}] = true
			case strings.HasPrefix(verb, verbDelete), verb == verbLock && key == "ready":
				ops[rule{Txn: name, Verb: verb, Key: key}] = true
			}
		}
	}
	return append(all, slices.SortedFunc(maps.Keys(ops), func(a, b rule) int { return strings.Compare(a.String(), b.String()) })...)
}

var notName = regexp.MustCompile(`[^a-z0-9]+`)

func (r rule) file() string {
	name := strings.Trim(notName.ReplaceAllString(strings.ToLower(r.String()), "_"), "_")
	return filepath.Join("testdata", "without_"+name+".txt")
}

// TestMutations: each rule has a story that breaks an invariant without it, or a reason why none does.
func TestMutations(t *testing.T) {
	found, survived := 0, 0
	all := rules()
	for _, r := range all {
		_, err := os.Stat(r.file())
		switch {
		case err == nil:
			found++
		case *record > 0 && r.search(t):
			found++
		case survivors[r] != "":
			survived++
		default:
			t.Errorf("without %q nothing breaks: search with -record 1m, or give the reason", r)
		}
	}
	t.Logf("%d rules are missed, %d are not", found, survived)
}

// search explores small settings and walks through large ones without the rule until an invariant breaks, and writes the
// story down.
func (r rule) search(t *testing.T) bool {
	t.Helper()
	for _, s := range []setting{
		{Workers: 2, Scope: gang, Agents: 3, Hosts: 1, Budget: 1, Faults: faults{Fail: 1, Delay: 1, Wait: 1}},
		{Workers: 1, Scope: gang, Agents: 3, Hosts: 2, Budget: 1, Faults: faults{Die: 1, Cut: 1, Delay: 1, Wait: 3}},
		{Workers: 1, Scope: instance, Agents: 2, Hosts: 1, Budget: 1, Faults: faults{Die: 1, Unknown: 1, Delay: 1, Wait: 1}},
	} {
		s.Without = r
		if r.write(t, s, s.complete(700)) {
			return true
		}
	}
	all, end := large(), time.Now().Add(*record)
	for round := uint64(0); time.Now().Before(end); round++ {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			s := all[name]
			s.Without = r
			for k := range uint64(10) {
				if r.write(t, s, s.walk(round*10+k+1, *length)) {
					return true
				}
			}
		}
	}
	t.Logf("%s: nothing", r)
	return false
}

// write writes a finding down, if the same story is sound with the rule.
func (r rule) write(t *testing.T, s setting, f finding) bool {
	t.Helper()
	if f.bad == "" || strings.HasPrefix(f.bad, "too many") {
		return false
	}
	story := s.shrink(f.story)
	bad, _ := s.replay(story)
	s.Without = rule{}
	if sound, _ := s.replay(story); sound != "" || bad == "" {
		return false
	}
	s.Without = r
	text := fmt.Sprintf("# Without: %s.\n# %s\nwant %s\n%s", r, bad, kind(bad), s.scenario(story))
	if err := os.WriteFile(r.file(), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %s", r, bad)
	return true
}

// Why no story is known for a rule.
const (
	unfound  = "no story was found in 400 walks of 400 steps; the conductor's own explorer has one where it knows the rule"
	leftover = "what is left behind is read by nobody, or dropped by a second rule"
)

// survivors are the rules without which nothing breaks, as far as is known, with the reason.
var survivors = map[rule]string{
	{Txn: "T10", Verb: anyCheck}:                          unfound,
	{Txn: "T10b", Verb: anyCheck}:                         unfound,
	{Txn: "T11", Verb: anyCheck}:                          unfound,
	{Txn: "T12", Verb: anyCheck}:                          unfound,
	{Txn: "T14", Verb: anyCheck}:                          unfound,
	{Txn: "T15", Verb: anyCheck}:                          unfound,
	{Txn: "T16", Verb: anyCheck}:                          unfound,
	{Txn: "T2", Verb: anyCheck}:                           unfound,
	{Txn: "T4", Verb: anyCheck}:                           unfound,
	{Txn: "T5", Verb: anyCheck}:                           unfound,
	{Txn: "T6", Verb: anyCheck}:                           unfound,
	{Txn: "T7", Verb: anyCheck}:                           unfound,
	{Txn: "T9", Verb: anyCheck}:                           unfound,
	{Txn: "adopt", Verb: anyCheck}:                        unfound,
	{Txn: "ask", Verb: anyCheck}:                          unfound,
	{Txn: "begin", Verb: anyCheck}:                        unfound,
	{Txn: "clean up", Verb: anyCheck}:                     unfound,
	{Txn: "drop ask", Verb: anyCheck}:                     unfound,
	{Txn: "release", Verb: anyCheck}:                      unfound,
	{Txn: "retarget", Verb: anyCheck}:                     unfound,
	{Txn: "rewrite", Verb: anyCheck}:                      unfound,
	{Txn: "rewrite", Verb: verbLock, Key: "ready"}:        unfound,
	{Txn: "T12", Verb: verbDelete, Key: "ask"}:            leftover,
	{Txn: "T14", Verb: verbDelete, Key: "live"}:           leftover,
	{Txn: "T14", Verb: verbDelete, Key: "ready"}:          leftover,
	{Txn: "T15", Verb: verbDeleteTree, Key: "ask"}:        leftover,
	{Txn: "T3", Verb: verbDeleteTree, Key: "ask"}:         leftover,
	{Txn: "T4", Verb: verbDelete, Key: "ready"}:           leftover,
	{Txn: "T6", Verb: verbDeleteTree, Key: "ask"}:         leftover,
	{Txn: "clean up", Verb: verbDelete, Key: "roster"}:    leftover,
	{Txn: "clean up", Verb: verbDeleteTree, Key: "ask"}:   leftover,
	{Txn: "clean up", Verb: verbDeleteTree, Key: "ready"}: leftover,
	{Hook: noFounding}:                                    unfound,
	{Hook: noSuperior}:                                    unfound,
	{Hook: noWaiting}:                                     unfound,
	{Hook: noProlonged}:                                   unfound,
	{Hook: noContact}:                                     unfound,
	{Hook: noHolders}:                                     unfound,
	{Hook: noMismatch}:                                    unfound,
	{Hook: noStrays}:                                      unfound,
}
