package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim"
	"github.com/muster-agent/muster/shim/status"
)

type stopFlags struct {
	ask   askFlags
	grace time.Duration
}

func newStop(s streams) *cobra.Command {
	f := stopFlags{}
	cmd := &cobra.Command{
		Use: "stop APP", Short: "Stop a run in grace, with the verdict stopped", Args: exactly("APP"),
		Long: `Asks the gang through its registry to stop: every process gets its stop signal and its grace,
checkpoints are kept, the verdict is stopped. Waits for the verdict and prints it. When the registry
is out of reach the agents on this host are stopped themselves; without a registry there is no
verdict, and the run goes on when it is launched again.`,
		Example:           "  muster stop d1\n  muster stop d1 --grace 0s --registry consul://127.0.0.1:8500",
		ValidArgsFunction: completeKnown(&f.ask),
		RunE: func(cmd *cobra.Command, args []string) error {
			var grace *time.Duration
			if cmd.Flags().Changed("grace") {
				grace = &f.grace
			}
			return f.stop(cmd.Context(), s, args[0], grace)
		},
	}
	f.ask.register(cmd.Flags())
	cmd.Flags().DurationVar(&f.grace, "grace", 0, "time between the stop signal and SIGKILL (default: the definition's)")
	return cmd
}

func (f *stopFlags) stop(ctx context.Context, s streams, app string, grace *time.Duration) error {
	if grace != nil && *grace < 0 {
		return usage("stop: --grace %s: want 0s or more", *grace)
	}
	k := f.ask.lookup(s.err)
	facts, err := k.app(ctx, app)
	if err != nil {
		return err
	}
	switch v := facts.verdict(); {
	case v != nil:
		fmt.Fprintf(s.err, "%s is over already\n", app)
		fmt.Fprintf(s.out, "%s: %s\n", app, verdictText(*v))
		return nil
	case facts.registry == nil:
		return stopAgents(ctx, s, k, facts, grace)
	case facts.registry.Interrupted():
		return fmt.Errorf("%s has no live agent that could stop: its run was interrupted and goes on when it is launched again; muster forget %s removes it", app, app)
	}
	return stopRun(ctx, s, facts, grace)
}

// stopRun asks the conductor and waits for its word.
func stopRun(ctx context.Context, s streams, facts appFacts, grace *time.Duration) error {
	c, err := openForQuestions(facts.address)
	if err != nil {
		return err
	}
	defer c.Close()
	ask := registry.Ask{Kind: registry.AskStop, By: "stop", Args: map[string]string{"who": whoAsks()}}
	if grace != nil {
		ask.Args["grace"] = strconv.FormatFloat(grace.Seconds(), 'f', -1, 64)
	}
	asking, cancel := context.WithTimeout(ctx, registryPatience)
	defer cancel()
	if err := c.Ask(asking, facts.id, ask); err != nil {
		return registryError(facts.address, err)
	}
	fmt.Fprintf(s.err, "%s was asked to stop; waiting for the verdict (Ctrl-C leaves, the request stands)\n", facts.id)
	v, err := c.WaitVerdict(ctx, facts.id, facts.registry.App.Run)
	if err != nil {
		return registryError(facts.address, err)
	}
	fmt.Fprintf(s.out, "%s: %s\n", facts.id, verdictText(v))
	return nil
}

// whoAsks names the person for the verdict's cause.
func whoAsks() string {
	name := strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}

// agentPoll is how often agents that were asked to stop are looked at.
const agentPoll = 300 * time.Millisecond

// stopAgents asks the agents of this host one by one; their registry cannot be asked.
func stopAgents(ctx context.Context, s streams, k lookup, facts appFacts, grace *time.Duration) error {
	if !facts.living() {
		return withCode(shim.CodeRegistry, fmt.Errorf("%s: no agent on this host answers, and its registry %s neither; nothing was stopped",
			facts.id, cmp.Or(facts.address, facts.local.Registry)))
	}
	names := slices.Sorted(maps.Keys(facts.states))
	fmt.Fprintf(s.err, "%s: stopping %s through their own sockets: no verdict is written\n", facts.id, strings.Join(names, ", "))
	sockets := k.state.Sockets(facts.id)
	var seconds *float64
	if grace != nil {
		seconds = new(grace.Seconds())
	}
	var errs []error
	for _, name := range names {
		if err := stopOne(ctx, sockets[name], seconds); err != nil {
			errs = append(errs, fmt.Errorf("stop %s/%s: %w", facts.id, name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := awaitGone(ctx, sockets); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s: interrupted: %s stopped; it goes on when it is launched again\n", facts.id, strings.Join(names, ", "))
	return nil
}

func stopOne(ctx context.Context, path string, grace *float64) error {
	ctx, cancel := context.WithTimeout(ctx, registryPatience)
	defer cancel()
	c := status.Dial(path)
	defer c.Close()
	return c.Stop(ctx, grace)
}

func awaitGone(ctx context.Context, sockets map[string]string) error {
	tick := time.NewTicker(agentPoll)
	defer tick.Stop()
	for len(states(ctx, sockets)) > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}
