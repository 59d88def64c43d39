package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/shim/exit"
)

type commandFlags struct {
	ask  flags.Ask
	json bool
}

func newCommand(s console.Streams) *cobra.Command {
	f := commandFlags{}
	cmd := &cobra.Command{
		Use: "command [APP/]INSTANCE NAME", Short: "Run a command of the package's scripts in an instance",
		Args: exactly("[APP/]INSTANCE", "NAME"),
		Long: `Has the instance's agent run a command of its package in the instance's container: a method of the
commandScript, or one of metainfo's commands, with the configuration that START was given. Prints the
output of the command and exits with its exit code. GET_CONFIG prints that configuration. The whole
output is kept in the instance's log folder, as output-N.txt and errors-N.txt. From another host it
takes the right to write the app's keys in its registry.`,
		Example:           "  muster command hb1/MASTER-0 GET_CONFIG\n  muster command worker-1 REBALANCE --json",
		ValidArgsFunction: completeSignal(&f.ask),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.command(cmd.Context(), s, args[0], args[1])
		},
	}
	f.ask.Register(cmd.Flags())
	f.ask.UI.Register(cmd.Flags())
	cmd.Flags().BoolVar(&f.json, "json", false, "print the answer as JSON")
	return cmd
}

func (f *commandFlags) command(ctx context.Context, s console.Streams, word, name string) error {
	k, err := f.ask.Lookup(word, s.Err)
	if err != nil {
		return err
	}
	t, c, err := k.Agent(ctx, word)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	result, err := c.Command(ctx, name)
	if err != nil {
		return t.Failed("command "+name+" of", err)
	}
	if f.json {
		if err := console.PrintJSON(s.Out, result); err != nil {
			return err
		}
	} else {
		_, _ = io.WriteString(s.Out, result.Stdout) // nobody reads any more
		_, _ = io.WriteString(s.Err, result.Stderr)
	}
	switch {
	case result.Code == nil:
		return fmt.Errorf("command %s of %s/%s: %s", name, t.App, t.Instance, result.Cause)
	case *result.Code != 0:
		return exit.Silent{Code: *result.Code}
	}
	return nil
}
