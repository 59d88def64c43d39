package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
)

type execFlags struct {
	ask         flags.Ask
	interactive bool
	tty         bool
	env         []string
	cwd         string
}

func newExec(s console.Streams) *cobra.Command {
	f := execFlags{}
	cmd := &cobra.Command{
		Use: "exec [flags] [APP/]INSTANCE -- COMMAND [ARG]...", DisableFlagsInUseLine: true,
		Short: "Run a program beside an instance's process", Args: execArgs,
		Long: `Runs the program in the namespaces and the cgroup of the instance's process, with its environment,
working folder and user, and exits with the program's exit code, 128+n after signal n. Before the
process starts, the environment holds only what is known by then. The program is killed when the
instance's process ends, and gets a hangup when this command is killed. INT, TERM and HUP are passed
on to the program; the third of them ends this command. From another host it takes the right to write
the app's keys in its registry.`,
		Example: `  muster exec d1/worker-0                         -- env
  muster exec d1/worker-0 --env DEBUG=1           -- python3 probe.py <data
  muster exec worker-0                            -- bash  # on a terminal`,
		ValidArgsFunction: completeInstance(&f.ask),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.exec(cmd.Context(), s, cmd.Flags().Changed, args[0], args[1:])
		},
	}
	set := cmd.Flags()
	f.ask.Register(set)
	f.ask.UI.Register(set)
	set.BoolVarP(&f.interactive, "interactive", "i", false,
		"connect stdin (default: if it is not a terminal, or the program has one)")
	set.BoolVarP(&f.tty, "tty", "t", false, "give the program a terminal (default: if stdin and stdout are terminals)")
	set.StringArrayVar(&f.env, "env", nil, "NAME[=VALUE] added to the process's environment; repeatable")
	set.StringVar(&f.cwd, "cwd", "", "working folder, relative to the process's own")
	return cmd
}

func execArgs(_ *cobra.Command, args []string) error {
	if len(args) < 2 {
		return exit.Usagef("exec: got %d arguments, want [APP/]INSTANCE -- COMMAND [ARG]...", len(args))
	}
	return nil
}

// completeInstance offers the instances that live on this host, then leaves the rest to the shell.
func completeInstance(ask *flags.Ask) cobra.CompletionFunc {
	instances := completeSignal(ask)
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return instances(cmd, args, typed)
	}
}

func (f *execFlags) exec(
	ctx context.Context, s console.Streams, given func(string) bool, word string, argv []string,
) error {
	k, err := f.ask.Lookup(word, s.Err)
	if err != nil {
		return err
	}
	t, c, err := k.Agent(ctx, word)
	if err != nil {
		return err
	}
	defer c.Close()
	x, err := f.run(ctx, c, s, given, argv)
	if err == nil && x.Error != "" {
		err = errors.New(x.Error)
	}
	switch {
	case err != nil:
		return t.Failed("exec", err)
	case x.Signal != 0:
		return exit.Silent{Code: 128 + x.Signal}
	case x.Code != 0:
		return exit.Silent{Code: x.Code}
	}
	return nil
}

// run gives the program this command's streams until it ends.
func (f *execFlags) run(
	ctx context.Context, c *status.Client, s console.Streams, given func(string) bool, argv []string,
) (status.ExecExit, error) {
	in, out := console.Terminal(s.In), console.Terminal(s.Out)
	if !given("tty") {
		f.tty = in != nil && out != nil
	}
	if !given("interactive") {
		f.interactive = in == nil || f.tty
	}
	ask := status.ExecRequest{Argv: argv, Env: f.variables(), Cwd: f.cwd, Stdin: f.interactive}
	if f.tty {
		ask.Terminal = sizeOf(in, out)
	}
	if f.tty && in != nil {
		before, err := term.MakeRaw(int(in.Fd()))
		if err != nil {
			return status.ExecExit{}, fmt.Errorf("make the terminal raw: %w", err)
		}
		defer func() { _ = term.Restore(int(in.Fd()), before) }() // it was there before
	}
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	signals, sizes := handOn(ctx, leave, in, out)
	return c.Exec(ctx, ask, status.ExecStreams{
		Stdin: s.In, Stdout: console.Raw(s.Out), Stderr: console.Raw(s.Err), Resize: sizes,
		Signals: signals,
	})
}

// variables are --env; those without a value have this command's, if there is one. A terminal's kind is known here
// only.
func (f *execFlags) variables() []string {
	var all []string
	if kind, ok := os.LookupEnv("TERM"); ok && f.tty {
		all = append(all, "TERM="+kind)
	}
	for _, e := range f.env {
		name, _, whole := strings.Cut(e, "=")
		if value, ok := os.LookupEnv(name); !whole && ok {
			e, whole = name+"="+value, true
		}
		if whole {
			all = append(all, e)
		}
	}
	return all
}

// thirdTime is how often a user must interrupt the program before this command is left.
const thirdTime = 3

// handOn makes signals and new sizes of the terminal the program's, until ctx ends.
func handOn(ctx context.Context, leave context.CancelCauseFunc, in, out *os.File) (<-chan int, <-chan status.ExecSize) {
	caught := make(chan os.Signal, 8)
	signal.Notify(caught, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGWINCH)
	signals, sizes := make(chan int, thirdTime), make(chan status.ExecSize, 1)
	go func() {
		defer signal.Stop(caught)
		for ends := 0; ; {
			select {
			case <-ctx.Done():
				return
			case sig := <-caught:
				n, _ := sig.(syscall.Signal)
				if n == syscall.SIGWINCH {
					offer(sizes, *sizeOf(in, out))
					continue
				}
				if ends++; ends == thirdTime {
					leave(exit.Silent{Code: 128 + int(n)})
					return
				}
				signals <- int(n)
			}
		}
	}()
	return signals, sizes
}

// offer puts the newest size in the place of one that nobody has taken yet.
func offer(sizes chan status.ExecSize, z status.ExecSize) {
	select {
	case <-sizes:
	default:
	}
	sizes <- z
}

// sizeOf is that of the first which is a terminal; 24 by 80 when none is.
func sizeOf(terminals ...*os.File) *status.ExecSize {
	for _, f := range terminals {
		if f == nil {
			continue
		}
		if z, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil {
			return &status.ExecSize{Rows: z.Row, Columns: z.Col}
		}
	}
	return &status.ExecSize{Rows: 24, Columns: 80}
}
