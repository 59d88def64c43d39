package consul

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

var update = flag.Bool("update", false, "rewrite golden files")

// Names and indexes that stand for any.
const (
	anyMember, anyDirective = 11, 12
	anyApp, anySteps        = 13, 14
	mine, conductors        = "S", "C"
)

var (
	anyInstance = registry.Instance{Component: "COMPONENT", Index: 7}
	anyKeys     = keysOf("APP")
	anyAsk      = registry.Ask{Kind: "KIND", ID: "ID"}
)

// The tables of keys and transactions in doc/protocol.md are what the code does.
func TestProtocolPage(t *testing.T) {
	const file = "../../doc/protocol.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for name, want := range map[string]string{"keys": keyTable(), "transactions": transactionTable()} {
		begin, end := "<!-- "+name+": make golden -->\n", "<!-- end of "+name+" -->"
		before, rest, ok1 := strings.Cut(page, begin)
		got, after, ok2 := strings.Cut(rest, end)
		if !ok1 || !ok2 {
			t.Fatalf("%s has no %q", file, begin)
		}
		if diff := cmp.Diff(want, got); diff != "" && !*update {
			t.Errorf("doc/protocol.md is not the code (make golden): -want +got\n%s", diff)
		}
		page = before + begin + want + end + after
	}
	if *update {
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func keyTable() string {
	k := anyKeys
	var b strings.Builder
	b.WriteString("| key | record | written by | lives |\n|---|---|---|---|\n")
	for _, row := range []struct{ key, record, by, life string }{
		{k.app(), "`AppRecord`", "who founds (T2), begins a run (T15) or adopts (T19); its counts: the conductor", "until the next run, or `forget`"},
		{k.def("ID", 0), "a part of a definition too large for `app`", "the same, before", "as long as `app` names it"},
		{k.directive(), "`Directive`; locked by the conductor's session", "the conductor, once T2, T6 or T15 has made it that; T19", "until `forget`"},
		{k.roster("ID", 0), "a part of the packed `Roster`", "the conductor; T19", "until the verdict; the last one until the next run's"},
		{k.member(anyInstance), "`Member`", "its agent; `lost`: the conductor", "until `forget`; it outlives its agent"},
		{k.live(anyInstance), "the incarnation; locked by the agent's session", "its agent", "as long as that session"},
		{k.readyOf(7, anyInstance), "nothing; locked by the agent's session", "its agent", "as long as that session, until a report or the next acknowledgement"},
		{k.ask("KIND", "ID"), "`Ask`", "a command", "until it is served or dropped, or the run ends"},
		{k.login("PRINT"), "`Login`: who may log in by ssh, with which key", "a command; an agent for its process", "until its command ends or its agent leaves; one of `muster ssh --config` as long as the app, one of the page until another is made after its time"},
		{k.grant(anyInstance, "ID"), "the SHA-256 of a secret, in hex: who shows it to the instance's agent may act there, once", "a command", "until it is used, or its command ends"},
		{k.checkpoint(anyInstance), "`Checkpoint`", "its agent", "until `forget`"},
		{k.common(), "`CommonStep`", "the conductor", "until `forget`"},
		{k.verdict("RUN"), "`Verdict`", "the conductor", "until `forget`"},
	} {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", pattern(row.key), row.record, row.by, row.life)
	}
	return b.String()
}

// pattern names a key by what stands for any.
func pattern(key string) string {
	key = strings.TrimPrefix(key, anyKeys.base)
	key = strings.NewReplacer("COMPONENT/7", "<component>/<index>", "KIND", "<kind>", "RUN", "<run>", "PRINT", "<fingerprint>").Replace(key)
	key = regexp.MustCompile(`\bID/0`).ReplaceAllString(key, "<id>/<n>")
	key = regexp.MustCompile(`\bID\b`).ReplaceAllString(key, "<id>")
	return regexp.MustCompile(`^ready/\d+/`).ReplaceAllString(key, "ready/<generation>/")
}

func transactionTable() string {
	k, in := anyKeys, anyInstance
	text := []byte("{}")
	claim := conductor.Claim{Instance: in, DirectiveIndex: anyDirective, MembersIndex: anyMember}
	var b strings.Builder
	b.WriteString("| | who, when | operations, in order |\n|---|---|---|\n")
	for _, row := range []struct {
		name, when string
		ops        ops
	}{
		{"T1 look", "a newcomer, before each decision", k.look(in, "RUN")},
		{"T2 found", "a newcomer that saw no app", k.found(conductors, text, text, nil)},
		{"T3 claim", "a newcomer with a proof", k.claim(claim, mine, text, false)},
		{"T4 acknowledge", "nothing older than the generation runs here; ports are bound", k.record(in, mine, anyMember, text, k.acknowledge(in, mine, 8, 7))},
		{"T5 seal", "the conductor, when all have acknowledged, or a flex has changed who runs", k.direct(conductors, anyDirective, text, ops{opSet(k.roster("ID", 0), text)})},
		{"T6 elect", "an agent that sees the directive without a lock", k.elect(conductors, anyDirective, text, false)},
		{"T7 lost", "the conductor; two operations for each of at most 60 members", k.lost(conductors, []conductor.Lost{{Instance: in, Index: anyMember}})},
		{"T9 attach", "the own session has ended, the record is still mine", k.attach(in, mine, anyMember, "INC", 7)},
		{"T10 report", "the process is gone", k.record(in, mine, anyMember, text, k.unready(in, 7))},
		{"T10b publish", "attempt, budget, exports, notes", k.record(in, mine, anyMember, text, nil)},
		{"T11 direct", "the conductor: another generation, counts, components released", k.direct(conductors, anyDirective, text, nil)},
		{"T12 end", "the conductor: the verdict", k.direct(conductors, anyDirective, text, ops{opCAS(k.verdict("RUN"), 0, text)})},
		{"T13 checkpoint", "a complete checkpoint is stored, given up or found damaged", k.commitSteps(in, mine, anyMember, anySteps, text)},
		{"T13b common step", "the conductor, when a checkpoint was committed", k.publishCommon(conductors, text)},
		{"T14 leave", "the process is gone, the agent goes", k.record(in, mine, anyMember, text, append(k.unready(in, 7), opDelete(k.live(in))))},
		{"T15 new run", "a newcomer; nobody conducts, and the last run has a verdict or no members", k.newRun(conductors, "RUN", anyDirective, anyApp, text, text, nil, "", []registry.Instance{in})},
		{"T16 step down", "the conductor that leaves", k.stepDown(conductors, anyDirective, text)},
		{"T17 beat", "every member, with each renewal", k.mine(in, mine, anyMember)},
		{"T18 rewrite", "the own record has vanished or gone back, the directive is there", k.rewrite(in, anyDirective, anyMember, text, k.acknowledge(in, mine, 7, 0))},
		{"T19 adopt", "a member: the directive has vanished, and an operator asks for it; or it went back", k.adopt(0, 0, 0, text, registry.Directive{Run: "RUN"}, ops{opIndex(k.roster("ID", 0), 15)})},
		{"T20 ask", "a command", k.put(anyAsk, anyDirective)},
		{"T21 drop", "the conductor: served, or of another run", k.drop(conductors, anyAsk)},
		{"T22 clean up", "the conductor, after the verdict", k.cleanUp(conductors, []string{k.roster("ID", 0)})},
		{"T23 forget", "an operator; no index is held", k.forget(anyDirective, map[string]int{"COMPONENT": 1})},
	} {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", row.name, row.when, described(row.ops))
	}
	return b.String()
}

// described prints operations: verb, key, and what is checked or locked.
func described(all ops) string {
	var words []string
	for _, o := range all {
		word := fmt.Sprintf("`%s` %s", o.KV.Verb, short(o.KV.Key))
		if o.KV.Key == anyKeys.base {
			word = fmt.Sprintf("`%s` all", o.KV.Verb)
		}
		switch {
		case o.KV.Session != "":
			word += " " + o.KV.Session
		case o.KV.Index != 0:
			word += " " + indexName(o.KV.Index)
		case o.KV.Verb == "cas":
			word += " 0"
		}
		words = append(words, strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(word))
	}
	return strings.Join(words, "; ")
}

// short is the pattern of a key in the table of transactions, where the instance goes without saying.
func short(key string) string {
	key = strings.TrimPrefix(key, anyKeys.base)
	for _, of := range []string{"/COMPONENT/7", "/COMPONENT/0"} {
		key = strings.TrimSuffix(key, of)
	}
	return strings.NewReplacer("ready/8", "ready/g", "ready/7", "ready/last").Replace(pattern(key))
}

func indexName(n uint64) string {
	switch n {
	case anyMember:
		return "M"
	case anyDirective:
		return "D"
	}
	return "as read"
}
