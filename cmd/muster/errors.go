package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/troubles"
)

// newErrors is a help topic that takes words: muster help errors WORDS.
func newErrors(s console.Streams) *cobra.Command {
	return &cobra.Command{
		Use: "errors [WORDS…]", Short: "What a message, a class or an exit code means, and what mends it",
		Long: `Print what a message means, what causes it and how to mend it: words of the message
or all of it, an exit code, or a class of failure. Without words, print all.

  muster help errors registry forbids it
  muster help errors 77
  muster help errors out-of-memory

doc/troubleshooting.md has the same text.`,
		DisableFlagParsing: true, Args: cobra.ArbitraryArgs, // a message may have words that look like flags
		RunE: func(cmd *cobra.Command, words []string) error {
			if len(words) == 1 && (words[0] == "--help" || words[0] == "-h") {
				return cmd.Help()
			}
			return explainErrors(s, words)
		},
	}
}

func explainErrors(s console.Streams, words []string) error {
	text, err := troubles.Help(words)
	if err != nil {
		return err
	}
	fmt.Fprint(s.Out, text)
	return nil
}

// helpWithErrors gives help its topic that takes words.
func helpWithErrors(root *cobra.Command, s console.Streams) {
	root.InitDefaultHelpCmd()
	for _, help := range root.Commands() {
		if help.Name() != "help" {
			continue
		}
		help.DisableFlagParsing = true
		others := help.Run
		help.Run, help.RunE = nil, func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && args[0] == "errors" {
				return explainErrors(s, args[1:])
			}
			others(cmd, args)
			return nil
		}
	}
}
