package machine

import (
	"fmt"
	"strings"
)

// markdown prints the rule table and its picture: doc/machine.md is this text.
func markdown() string {
	var b strings.Builder
	b.WriteString("# The agent's machine\n\nPrinted from the rule table in `shim/machine/rules.go` (`make golden`). " +
		"An agent is in one phase; an event that has no rule there\nchanges nothing. The first rule whose condition " +
		"holds wins.\n\nOf the actions `acknowledge` is T4 of [protocol.md](protocol.md), `publish` T10b, " +
		"`report` T10 (or T10b for a\nrestart in place), `leave` T14. `cut-off` and `contact` are what its section " +
		"on the fence says.\n\n```mermaid\nstateDiagram-v2\n    [*] --> starting\n")
	seen := map[string]bool{}
	for _, r := range rules {
		edge := fmt.Sprintf("    %s --> %s: %s\n", r.From, r.To, r.On)
		if r.From != r.To && !seen[edge] {
			seen[edge] = true
			b.WriteString(edge)
		}
	}
	b.WriteString("    done --> [*]\n    superseded --> [*]\n```\n")
	for _, p := range allPhases() {
		if p.Final() {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n| event | if | then | do |\n|---|---|---|---|\n", p)
		for _, r := range rules {
			if r.From == p {
				fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.On, r.If.name, r.To, actionNames(r.Do))
			}
		}
	}
	return b.String()
}

func actionNames(as []action) string {
	var names []string
	for _, a := range as {
		if a.name != "" {
			names = append(names, a.name)
		}
	}
	return strings.Join(names, ", ")
}
