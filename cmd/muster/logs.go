package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/cmd/internal/logs"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/process"
)

type logsFlags struct {
	ask    flags.Ask
	follow bool
	stdout bool
	stderr bool
	agent  bool
	side   string
	tail   int
}

func newLogs(s console.Streams) *cobra.Command {
	f := logsFlags{}
	cmd := &cobra.Command{
		Use: "logs [APP/]INSTANCE|APP", Short: "Print the output of processes, also after their end",
		Args: exactly("[APP/]INSTANCE or APP"),
		Long: `Prints what an instance's process wrote to its standard output, then what it wrote to its standard
error, which goes to standard error here too: all attempts in its last container on its host. The
agents of other hosts send theirs (--registry, where this host does not know the app).
--stdout or --stderr prints one of them on standard output, --agent the log of its agent,
--side NAME the output of a side process of this host. With APP alone all instances are printed
one after the other, or with -f side by side, each line after the instance's name and | (standard
output) or ! (standard error). -f follows restarts and rotations until the run ends.`,
		Example:           "  muster logs d1/worker-0 -f\n  muster logs worker-0 --stderr --tail 20\n  muster logs d1",
		ValidArgsFunction: completeLogs(&f.ask),
		RunE:              func(cmd *cobra.Command, args []string) error { return f.logs(cmd.Context(), s, args[0]) },
	}
	f.ask.Register(cmd.Flags())
	f.ask.History.Register(cmd.Flags())
	f.ask.History.RegisterRun(cmd.Flags())
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "keep printing until the run ends")
	cmd.Flags().BoolVar(&f.stdout, "stdout", false, "print standard output alone")
	cmd.Flags().BoolVar(&f.stderr, "stderr", false, "print standard error alone")
	cmd.Flags().BoolVar(&f.agent, "agent", false, "print the agent's own log")
	cmd.Flags().StringVar(&f.side, "side", "", "print the log of the side process `NAME`")
	cmd.Flags().IntVar(&f.tail, "tail", -1, "only the last `N` lines of each log")
	return cmd
}

func (f *logsFlags) logs(ctx context.Context, s console.Streams, what string) error {
	switch {
	case f.stdout && f.stderr:
		return exit.Usagef("logs: --stdout and --stderr: want one of them, or none for both")
	case (f.stdout || f.stderr) && f.agent:
		return exit.Usagef("logs: --%s and --agent: want one of them", f.streams()[0])
	case f.side != "" && f.agent:
		return exit.Usagef("logs: --side and --agent: want one of them")
	case strings.ContainsAny(f.side, "/\x00"):
		return exit.Usagef("logs: --side %q: want the name of a side process", f.side)
	}
	k, err := f.ask.Lookup(what, s.Err)
	if err != nil {
		return err
	}
	t, err := k.Target(what, true)
	if err != nil {
		return err
	}
	l, end, err := logs.Anywhere(ctx, k, t)
	if err != nil {
		return err
	}
	defer end()
	l.Streams, l.Follow, l.Tail = f.files(s), f.follow, f.tail
	if f.side != "" && l.Facts.Past != nil {
		return exit.Usagef("logs: --side %s: the history store keeps no logs of side processes", f.side)
	}
	if f.side != "" {
		l.Elsewhere = nil // they are read on the instance's own host alone
	}
	if t.Instance != nil {
		return l.One(ctx, t.Instance.String())
	}
	return l.All(ctx)
}

// streams are the names of the process's streams to print.
func (f *logsFlags) streams() []string {
	switch {
	case f.stdout:
		return []string{"stdout"}
	case f.stderr:
		return []string{"stderr"}
	}
	return []string{"stdout", "stderr"}
}

func (f *logsFlags) files(s console.Streams) []logs.Stream {
	out := console.Raw(s.Out)
	if f.agent {
		return []logs.Stream{{File: "agent.log", Out: out, Mark: "|"}}
	}
	var all []logs.Stream
	for _, name := range f.streams() {
		o := logs.Stream{File: name + ".log", Out: out, Mark: "|"}
		if f.side != "" {
			o.File = process.SideLogName(f.side, name)
		}
		if len(all) > 0 {
			o.Out, o.Mark = console.Raw(s.Err), "!"
		}
		all = append(all, o)
	}
	return all
}
