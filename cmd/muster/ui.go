package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/cmd/internal/ui"
	"github.com/muster-agent/muster/shim/exit"
)

type uiFlags struct {
	ask    flags.Ask
	listen string
}

func newUI(s console.Streams) *cobra.Command {
	f := uiFlags{}
	cmd := &cobra.Command{
		Use: "ui", Short: "Show the apps of this host and of a registry in a browser", Args: exactly(),
		Long: `Serves a page with all apps of this host and, with --registry, of a registry: each with its instances
and their logs, as they change. Prints a link that opens it once, and the next link when one was used. The
page listens on this machine alone; from another one, forward the port (ssh -L). Ctrl-C ends it.`,
		Example: "  muster ui\n  muster ui --registry consul://127.0.0.1:8500 --listen 127.0.0.1:8080",
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.serve(cmd.Context(), s) },
	}
	f.ask.Register(cmd.Flags())
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:0",
		"`ADDRESS` of this machine to listen at; port 0: any that is free")
	return cmd
}

func (f *uiFlags) serve(ctx context.Context, s console.Streams) error {
	host, _, err := net.SplitHostPort(f.listen)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return exit.Usagef("ui: --listen %q: want an address of this machine's own, such as 127.0.0.1:8080", f.listen)
	}
	if _, err := f.ask.Lookup("", s.Err); err != nil {
		return err
	}
	l, err := net.Listen("tcp", f.listen)
	if err != nil {
		return exit.With(exit.Usage, fmt.Errorf("ui: --listen: %w", err))
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	server := ui.Server{
		Lookup: func(app string) (apps.Lookup, error) { return f.ask.Lookup(app, s.Err) },
		Link:   func(url string) { fmt.Fprintln(s.Out, url) },
	}
	return exit.With(exit.Internal, server.Serve(ctx, l))
}
