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
func rules(shown map[rule]bool) []rule {
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
	for r := range shown { // a few walks do not meet every transaction
		if r.Txn != "" {
			ops[r] = true
		}
	}
	return append(all, slices.SortedFunc(maps.Keys(ops), func(a, b rule) int { return strings.Compare(a.String(), b.String()) })...)
}

var notName = regexp.MustCompile(`[^a-z0-9]+`)

func (s *setting) file() string {
	name := s.Without.String()
	if s.And != (rule{}) {
		name += " and " + s.And.String()
	}
	return filepath.Join("testdata", "without_"+strings.Trim(notName.ReplaceAllString(strings.ToLower(name), "_"), "_")+".txt")
}

// missed are the rules of which a scenario shows that they are missed; some only together with another that covers them.
func missed(t *testing.T) map[rule]bool {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := map[rule]bool{}
	for _, path := range paths {
		sc, err := readScenario(path)
		if err != nil {
			t.Fatal(err)
		}
		all[sc.set.Without], all[sc.set.And] = true, true
	}
	return all
}

// TestMutations: each rule has a scenario that breaks an invariant without it (TestScenarios replays them), or a reason
// why there is none.
func TestMutations(t *testing.T) {
	found, survived := 0, 0
	shown := missed(t)
	all := rules(shown)
	for _, r := range all {
		switch {
		case shown[r]:
			found++
		case *record > 0 && r.search(t):
			found++
		case survivors[r] != "":
			survived++
			t.Logf("without %q nothing breaks: %s", r, survivors[r])
		default:
			t.Errorf("without %q nothing breaks: search with -record 1m, or give the reason", r)
		}
	}
	t.Logf("%d rules: %d are missed, %d are not", len(all), found, survived)
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
				if r.write(t, s, s.hunt(round*10+k+1, *length)) {
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
	sound := s
	sound.Without, sound.And = rule{}, rule{}
	if b, _ := sound.replay(story); b != "" { // as short as that it breaks with the rule, too
		bad, story = s.replay(f.story)
	}
	if b, _ := sound.replay(story); b != "" || bad == "" {
		return false
	}
	text := fmt.Sprintf("# Without: %s.\n", r)
	if s.And != (rule{}) {
		text = fmt.Sprintf("# Without: %s; %s. One of them is enough.\n", r, s.And)
	}
	text += fmt.Sprintf("# %s\nwant %s\n%s", bad, kind(bad), s.scenario(story))
	if err := os.WriteFile(s.file(), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %s", r, bad)
	return true
}

// survivors are the rules without which nothing breaks, as far as is known, with the reason.
var survivors = map[rule]string{
	{Hook: noAgain}: "the machine never asks for it: it follows an acknowledgement whose result is unknown until it is known",
}
