package main

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/wording"
)

const long = `muster runs a distributed job as one gang: it publishes each container's host:port,
waits until all peers have done so, starts the training processes, restarts those that
fail from their checkpoint, and ends with one verdict.

Every flag may also be given as MUSTER_AGENT_<FLAG>, with _ for -.`

func newRoot(s console.Streams) *cobra.Command {
	asked := false // for the version
	root := &cobra.Command{
		Use: "muster", Short: "One gang, one verdict: the agent of distributed training jobs", Long: long,
		SilenceErrors: true, SilenceUsage: true, Args: noSuchVerb, SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asked {
				fmt.Fprint(s.Out, readVersion())
				return nil
			}
			return cmd.Help()
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return fromEnvironment(cmd) },
	}
	root.Flags().BoolVar(&asked, "version", false, "print the version of muster")
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exit.With(exit.Usage, flagMistake(cmd, err))
	})
	root.AddCommand(
		newRun(s), newAgent(s), newPlan(s), newExplain(s), newConvert(s), newRender(s), newSubmit(s),
		newValidate(s), newPs(s), newStatus(s), newTop(s), newLogs(s), newEvents(s), newUI(s), newStop(s), newKill(s),
		newFlex(s), newSave(s), newSignal(s), newHold(s), newExec(s), newSSH(s), newRsh(s), newCommand(s), newForget(s),
		newGC(s), newAdopt(s), newACL(s), newPackage(s), newPackageInit(s), newSlider(s), newHBoxSubmit(s),
		newDoctor(s), newVersion(s), newExitCodes(), newErrors(s), newLogin(),
	)
	helpWithErrors(root, s)
	heedEnvironment(root)
	completeValues(root)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		out := cmd.OutOrStdout()
		width := cmp.Or(console.Width(out), helpWidth)
		long := strings.TrimSpace(cmp.Or(cmd.Long, cmd.Short))
		fmt.Fprint(out, helpText(long+"\n\n"+cmd.UsageString(), width))
	})
	return root
}

func noSuchVerb(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		like := cmd.SuggestionsFor(args[0])
		if len(like) > 0 {
			return exit.Usagef("no verb %q; did you mean %s? muster help lists them", args[0],
				strings.Join(like, " or "))
		}
		return exit.Usagef("no verb %q; muster help lists them", args[0])
	}
	return nil
}

// helpWidth is how wide a help is where no terminal says.
const helpWidth = 80

// exampleIndent is where the rest of an example or of a usage line stands.
const exampleIndent = 6

// described is a line of a flag or a verb, up to where its description begins.
var described = regexp.MustCompile(`^ {2,}\S.*? {2,}`)

// helpText lays a help out for a width: paragraphs are filled, and descriptions go on below where they began.
func helpText(text string, width int) string {
	var b strings.Builder
	paragraph := ""
	fill := func() {
		if paragraph != "" {
			b.WriteString(wording.Wrap(paragraph, width, 0) + "\n")
		}
		paragraph = ""
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		if line != "" && line[0] != ' ' && !strings.HasSuffix(line, ":") {
			paragraph = strings.TrimPrefix(paragraph+" "+line, " ")
			continue
		}
		if paragraph != "" && line != "" && line[0] != ' ' { // a paragraph that ends in a colon
			line, paragraph = paragraph+" "+line, ""
		}
		fill()
		indent := len(described.FindString(line))
		b.WriteString(wording.Wrap(line, width, cmp.Or(indent, exampleIndent)) + "\n")
	}
	fill()
	return b.String()
}
