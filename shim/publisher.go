package shim

import (
	"context"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/publisher"
	"github.com/muster-agent/muster/shim/status"
)

// Each agent answers Slider's REST for the whole app, at a URL that only its own container knows.

// mostAsking bounds how many connections ask at a time.
const mostAsking = 4096

// publish opens the container's URL. Apps of other dialects have no scripts that would ask.
func (a *agent) publish(ctx context.Context) error {
	if a.app.Dialect != "slider" {
		return nil
	}
	l, address, err := publisher.Listen("127.0.0.1") // a container shares the host's network
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.publisher = address
	a.mu.Unlock()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // served until the agent closes
	prefix, done := publisher.Prefix(address), make(chan struct{})
	go func() {
		defer close(done)
		if err := publisher.Serve(ctx, status.Bounded(l, mostAsking), publisher.Guarded(prefix,
			a.data.WithFolders(prefix, publisher.Handler(prefix, appSource{a})))); err != nil {
			a.log.Warn("publisher failed", "err", err)
		}
	}()
	a.atEnd(func() { cancel(); <-done })
	return nil
}

// publisherURL is where the container's scripts ask; "": nowhere.
func (a *agent) publisherURL() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.publisher
}

// appSource reads the whole app from the registry.
type appSource struct{ *agent }

// View is the app's members and their exports.
func (s appSource) View(ctx context.Context) (publisher.View, error) {
	known, err := s.client.Status(ctx, s.id.appID)
	if err != nil {
		return publisher.View{}, err
	}
	return publisher.ViewOf(&s.app.App, known, s.alloc.User, func(in registry.Instance) plan.Request {
		request := s.request(in)
		request.Allocation.Ports, request.Allocation.ContainerID = nil, ""
		return request
	}), nil
}

// Stop asks the gang to end.
func (s appSource) Stop(ctx context.Context, by string) error {
	return s.client.Ask(ctx, s.id.appID, registry.Ask{
		Kind: registry.AskStop, ID: NewID(), By: "stop", Args: map[string]string{"who": by},
	})
}
