package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/submit"
)

// hboxProgress prints the progress of a job as hbox-submit does: the sum of what the workers report on stderr, by the
// number of workers.
type hboxProgress struct {
	state   status.Dir
	app     string
	result  string // where result.json will lie
	out     io.Writer
	workers []registry.Instance
	last    string
}

// hboxPoll is how often the agents are asked.
const hboxPoll = time.Second

// follow prints until the function that it returns is called with the run's end: then the last words of all count.
func (p *hboxProgress) follow(ctx context.Context) (stop func(error)) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(hboxPoll)
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
func (p *hboxProgress) ask(ctx context.Context) map[string]float64 {
	ctx, cancel := context.WithTimeout(ctx, hboxPoll)
	defer cancel()
	said := map[string]float64{}
	for _, in := range p.workers {
		client := status.Dial(p.state.Socket(p.app, in.String()))
		if st, err := client.State(ctx); err == nil && st.Progress != nil {
			said[in.String()] = *st.Progress
		}
		client.Close()
	}
	return said
}

// read is what they have said in the end.
func (p *hboxProgress) read() map[string]float64 {
	var result status.ResultFile
	if status.ReadJSON(p.result, &result) != nil {
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

func (p *hboxProgress) tell(said map[string]float64) {
	if line := submit.HBoxProgress(said, p.workers); line != "" && line != p.last {
		p.last = line
		fmt.Fprintln(p.out, line)
	}
}
