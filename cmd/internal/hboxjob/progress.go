package hboxjob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/gate"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/submit"
)

// Progress prints the progress of a job as hbox-submit does: the sum of what the workers report on stderr, by the
// number of workers, and where their pages are.
type Progress struct {
	State   status.Dir
	App     string
	Result  string // where result.json will lie
	Out     io.Writer
	Workers []registry.Instance
	last    string
	told    map[string]bool // lines about pages
	token   string          // of the run; empty: not known yet
}

// pollEvery is how often the agents are asked.
const pollEvery = time.Second

// Follow prints until the function that it returns is called with the run's end: then the last words of all count.
func (p *Progress) Follow(ctx context.Context) (stop func(error)) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(pollEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				p.tell(p.ask(ctx))
			}
		}
	})
	return func(end error) {
		cancel()
		wg.Wait()
		if _, over := errors.AsType[exit.Silent](end); end == nil || over {
			p.tell(p.read())
		}
	}
}

// ask is what the agents that answer say.
func (p *Progress) ask(ctx context.Context) map[string]float64 {
	ctx, cancel := context.WithTimeout(ctx, pollEvery)
	defer cancel()
	said := map[string]float64{}
	for _, in := range p.Workers {
		client := status.Dial(p.State.Socket(p.App, in.String()))
		st, err := client.State(ctx)
		if err == nil && st.Progress != nil {
			said[in.String()] = *st.Progress
		}
		if err == nil {
			p.tellPages(submit.HBoxPages(in.String(), p.shown(ctx, in, st)))
		}
		client.Close()
	}
	return said
}

// shown are an instance's exports, with the keys of its pages. A registry that does not answer is asked again.
func (p *Progress) shown(ctx context.Context, in registry.Instance, st status.State) map[string]string {
	keyed := func(at string) bool { return gate.Asks(st.Location, at) != "" }
	if !slices.ContainsFunc(slices.Collect(maps.Values(st.Exports)), keyed) {
		return st.Exports
	}
	if p.token == "" {
		facts, err := apps.Lookup{State: p.State, Warn: io.Discard}.App(ctx, p.App)
		if err != nil || facts.Registry == nil {
			return nil
		}
		p.token = facts.Registry.App.Token
	}
	return gate.Shown(p.token, p.App, in.String(), st.Location)
}

// read is what they have said in the end.
func (p *Progress) read() map[string]float64 {
	var result status.ResultFile
	if status.ReadJSON(p.Result, &result) != nil {
		return nil
	}
	said := map[string]float64{}
	for _, in := range result.Instances {
		if in.Progress != nil {
			said[in.Instance] = *in.Progress
		}
	}
	return said
}

func (p *Progress) tellPages(lines []string) {
	for _, line := range lines {
		if !p.told[line] {
			fmt.Fprintln(p.Out, line)
		}
		if p.told == nil {
			p.told = map[string]bool{}
		}
		p.told[line] = true
	}
}

func (p *Progress) tell(said map[string]float64) {
	if line := submit.HBoxProgress(said, p.Workers); line != "" && line != p.last {
		p.last = line
		fmt.Fprintln(p.Out, line)
	}
}
