package main

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// askFlags are those of every verb that asks about an app: which registry, which state folder.
type askFlags struct {
	registry registryFlags
	state    stateFlags
}

func (f *askFlags) register(flags flagSet) {
	flags.StringVar(&f.registry.address, "registry", "", "consul://HOST:PORT, consul+tls://HOST:PORT or unix:PATH (default: the one that the app was started with)")
	f.state.register(flags)
}

// lookup is where these flags say to look. Warnings go to warn.
func (f *askFlags) lookup(warn io.Writer) lookup {
	return lookup{
		state: f.state.resolve(), address: f.registry.address, fallback: f.registry.resolve(),
		named: f.registry.address != "" || os.Getenv("CONSUL_HTTP_ADDR") != "", warn: warn,
	}
}

type statusFlags struct {
	ask  askFlags
	json bool
}

func newStatus(s streams) *cobra.Command {
	f := statusFlags{}
	cmd := &cobra.Command{
		Use: "status APP", Short: "Say how a run stands: instances, conductor, who is missing, the verdict", Args: exactly("APP"),
		Long: `Asks the registry and the agents on this host. When the registry is gone, as the embedded one is
after the end of muster run, the files that the run left answer.`,
		Example:           "  muster status d1\n  muster status d1 --registry consul://127.0.0.1:8500 --json",
		ValidArgsFunction: completeKnown(&f.ask),
		RunE:              func(cmd *cobra.Command, args []string) error { return f.status(cmd.Context(), s, args[0]) },
	}
	f.ask.register(cmd.Flags())
	cmd.Flags().BoolVar(&f.json, "json", false, "print as JSON")
	return cmd
}

func (f *statusFlags) status(ctx context.Context, s streams, app string) error {
	facts, err := f.ask.lookup(s.err).app(ctx, app)
	if err != nil {
		return err
	}
	v := viewOf(facts)
	if f.json {
		return printJSON(s.out, v)
	}
	return v.print(s.out)
}
