package main

import (
	"context"
	"regexp"
	"strings"
	"time"

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
	since  string
	grep   string
	json   bool
}

func newLogs(s console.Streams) *cobra.Command {
	f := logsFlags{}
	cmd := &cobra.Command{
		Use: "logs [APP/]INSTANCE|APP", Short: "Print the output of processes, also after their end",
		Args: exactly("[APP/]INSTANCE or APP"),
		Long: `Prints what an instance's process wrote to its standard output and, to standard error, what it wrote
to its standard error, in the order of time: all attempts in its last container on its host. The
agents of other hosts send theirs (--registry, where this host does not know the app).
--stdout or --stderr prints one of them on standard output, --agent the log of its agent,
--side NAME the output of a side process, whose lines have no times. With APP alone all instances are printed
together, each line after the instance's name and | (standard output) or ! (standard error).
-f prints lines as they come, over restarts and rotations until the run ends. --tail, --since and
--grep leave out lines; with several of them a line must pass each. Times are known to the second.
On a terminal, what would steer it is shown as text; a pipe gets the bytes as they are.`,
		Example: "  muster logs d1/worker-0 -f\n  muster logs worker-0 --stderr --tail 20\n" +
			"  muster logs d1 --since 10m --grep 'loss|nan'\n  muster logs d1 --json | jq -r .line",
		ValidArgsFunction: completeLogs(&f.ask),
		RunE:              func(cmd *cobra.Command, args []string) error { return f.logs(cmd.Context(), s, args[0]) },
	}
	f.ask.Register(cmd.Flags())
	f.ask.UI.Register(cmd.Flags())
	f.ask.History.Register(cmd.Flags())
	f.ask.History.RegisterRun(cmd.Flags())
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "keep printing until the run ends")
	cmd.Flags().BoolVar(&f.stdout, "stdout", false, "print standard output alone")
	cmd.Flags().BoolVar(&f.stderr, "stderr", false, "print standard error alone")
	cmd.Flags().BoolVar(&f.agent, "agent", false, "print the agent's own log")
	cmd.Flags().StringVar(&f.side, "side", "", "print the log of the side process `NAME`")
	cmd.Flags().IntVar(&f.tail, "tail", -1, "only the last `N` lines of each log")
	cmd.Flags().StringVar(&f.since, "since", "", "only lines since `TIME` (10m, 2d, 2026-01-02T15:04:05Z)")
	cmd.Flags().StringVar(&f.grep, "grep", "", "only lines that match `RE` (Go's regular expressions)")
	cmd.Flags().BoolVar(&f.json, "json", false, "print an object for each line: app, instance, stream, at, line")
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
	since, grep, err := f.filters(time.Now())
	if err != nil {
		return err
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
	l.Streams, l.Follow, l.Tail, l.Since, l.Grep = f.files(s), f.follow, f.tail, since, grep
	if f.json {
		l.JSON = console.Raw(s.Out)
	}
	if f.side != "" && l.Facts.Past != nil {
		return exit.Usagef("logs: --side %s: the history store keeps no logs of side processes", f.side)
	}
	if f.side != "" {
		if err := l.CheckSide(ctx, t, f.side); err != nil {
			return err
		}
	}
	if t.Instance != nil {
		return l.One(ctx, t.Instance.String())
	}
	return l.All(ctx)
}

// filters are what --since and --grep ask for.
func (f *logsFlags) filters(now time.Time) (since time.Time, grep *regexp.Regexp, err error) {
	if f.since != "" {
		if since, err = parseSince(f.since, now); err != nil {
			return since, nil, err
		}
	}
	if f.grep != "" {
		if grep, err = regexp.Compile(f.grep); err != nil {
			return since, nil, exit.Usagef("logs: --grep %q: %v; want a regular expression of Go's, such as 'loss|nan'",
				f.grep, err)
		}
	}
	return since, grep, nil
}

// parseSince reads an age or a time. One without a zone is of this host's.
func parseSince(text string, now time.Time) (time.Time, error) {
	if age, err := parseAge(text); err == nil {
		return now.Add(-age), nil
	}
	for _, layout := range []string{
		time.RFC3339, "2006-01-02T15:04:05", time.DateTime, "2006-01-02 15:04", time.DateOnly,
	} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	return time.Time{}, exit.Usagef("logs: --since %q: want an age such as 90s, 10m, 36h or 7d, or a time such as %s",
		text, now.UTC().Format(time.RFC3339))
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
	out := console.Output(s.Out)
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
			o.Out, o.Mark = console.Output(s.Err), "!"
		}
		all = append(all, o)
	}
	return all
}
