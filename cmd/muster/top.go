package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/cmd/internal/top"
)

type topFlags struct {
	ask  flags.Ask
	json bool
	once bool
}

func newTop(s console.Streams) *cobra.Command {
	f := topFlags{}
	cmd := &cobra.Command{
		Use: "top [APP]", Short: "Show what apps, or the instances of one, use of memory, cores and GPUs",
		Args: atMost("APP"),
		Long: `Shows the newest samples of the agents, those on other hosts included: memory as the limit counts it,
cores in use (OF: of so many), and how busy the GPUs are. On a terminal the table is drawn every two seconds until q or
Ctrl-C; otherwise, and with --once or --json, once. An agent has its first sample after five seconds.`,
		Example:           "  muster top\n  muster top d1 --registry consul://127.0.0.1:8500\n  muster top d1 --json",
		ValidArgsFunction: completeKnown(&f.ask),
		RunE: func(cmd *cobra.Command, args []string) error {
			app := ""
			if len(args) == 1 {
				app = args[0]
			}
			return f.top(cmd.Context(), s, app)
		},
	}
	f.ask.Register(cmd.Flags())
	f.ask.UI.Register(cmd.Flags())
	cmd.Flags().BoolVar(&f.json, "json", false, "print as JSON, once")
	cmd.Flags().BoolVar(&f.once, "once", false, "print one table also on a terminal")
	return cmd
}

func (f *topFlags) top(ctx context.Context, s console.Streams, app string) error {
	k, err := f.ask.Lookup(app, s.Err)
	if err != nil {
		return err
	}
	screen, keys := console.Terminal(s.Out), console.Terminal(s.In)
	if screen == nil || keys == nil || f.once || f.json {
		return top.Show(ctx, s.Out, k, app, f.json)
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	before, err := term.MakeRaw(int(keys.Fd()))
	if err != nil {
		return err
	}
	defer func() { _ = term.Restore(int(keys.Fd()), before) }() // it was there before
	go awaitQuit(keys, stop)
	return top.Watch(ctx, screen, k, app, func() (width, rows int) {
		width, rows, _ = term.GetSize(int(screen.Fd())) // 0: no limit
		return width, rows
	})
}

// awaitQuit calls quit when q or Ctrl-C is typed, or nothing can be any more. It ends with the process.
func awaitQuit(keys *os.File, quit func()) {
	const ctrlC = 3
	key := make([]byte, 1)
	for {
		if n, err := keys.Read(key); err != nil || n == 1 && (key[0] == 'q' || key[0] == ctrlC) {
			quit()
			return
		}
	}
}
