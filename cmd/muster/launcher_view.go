package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/wording"
)

// printLauncher is for people: what is known, and what the launcher does with an agent's end.
func printLauncher(out io.Writer, l plan.Launcher) error {
	width := console.Width(out)
	fmt.Fprintf(out, "\nLauncher: %s\n\n", l.Name)
	var known [][]string
	for _, k := range l.Known {
		known = append(known, []string{k.What, k.Value, k.From})
	}
	if err := console.Table(out, "WHAT VALUE FROM", known); err != nil {
		return err
	}
	fmt.Fprintln(out)
	var answers [][]string
	for _, a := range l.Answers {
		codes := make([]string, len(a.Codes))
		for i, n := range a.Codes {
			codes[i] = strconv.Itoa(n)
		}
		answers = append(answers, []string{a.Answer, strings.Join(codes, ","), a.By, a.Does})
	}
	if err := console.Table(out, "END CODES SAID-BY THEN", answers); err != nil {
		return err
	}
	if l.Survives.By != "" {
		fmt.Fprintf(out, "\nStarted again on this host by %s.\n", l.Survives.By)
		kept := "It then finds as it was: " + strings.Join(l.Survives.Keeps, ", ") + "."
		fmt.Fprintln(out, wording.Wrap(kept, width, 2))
	} else {
		fmt.Fprintln(out, "\nNobody starts it again on this host.")
	}
	for _, note := range l.Notes {
		fmt.Fprintln(out, wording.Wrap("Note: "+note+".", width, len("Note: ")))
	}
	return nil
}
