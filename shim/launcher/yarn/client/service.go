package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/muster-agent/muster/shim/launcher/job"
	"github.com/muster-agent/muster/shim/launcher/yarn"
)

// restClient calls the REST of YARN's ResourceManager for services and applications: with a ticket where the cluster
// wants one, else as a user of simple authentication (user.name).
type restClient struct {
	// Addresses are those of its web application, http://HOST:PORT or HOST:PORT: of a pair, each is asked until one
	// is active.
	Addresses []string
	// User is whom it asks as; after Start, whom the cluster takes a ticket for.
	User string
	// Negotiate shows a ticket.
	Negotiate func(*http.Request) error

	mu  sync.Mutex // over api, while it is found
	api job.API
	way *negotiation
}

// open finds the ResourceManager that is active: one in standby sends its callers away.
func (r *restClient) open(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.api.Client != nil {
		return nil
	}
	var errs []error
	for _, address := range r.Addresses {
		base, client, err := job.HTTPClient(address, job.TLSFiles{})
		if err != nil {
			return err
		}
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		r.way = &negotiation{RoundTripper: client.Transport, Show: r.Negotiate}
		client.Transport = r.way
		a := job.API{Base: base, Client: client, Query: url.Values{"user.name": {r.User}}}
		var about struct{ ClusterInfo struct{ HAState string } }
		err = a.Call(ctx, http.MethodGet, "/ws/v1/cluster/info", nil, &about)
		if err == nil && about.ClusterInfo.HAState != "STANDBY" {
			r.api = a
			if name, _ := r.way.said(); name != "" {
				r.User = name
			}
			return nil
		}
		if err == nil {
			err = errors.New("in standby")
		}
		errs = append(errs, fmt.Errorf("yarn at %s: %w", base, r.wanting(err)))
	}
	if len(errs) == 0 {
		return fmt.Errorf("yarn: %w: no address of a ResourceManager: want --address, or yarn-site.xml in Hadoop's "+
			"configuration (--hadoop-conf)", job.ErrUnreachable)
	}
	return errors.Join(errs...)
}

// wanting says of a refusal what it may mean.
func (r *restClient) wanting(err error) error {
	odd, ok := errors.AsType[job.StatusError](err)
	if !ok || odd.Code != http.StatusUnauthorized {
		return err
	}
	if _, failed := r.way.said(); failed != nil {
		return fmt.Errorf("%w: the cluster wants a ticket: %w", err, failed)
	}
	return fmt.Errorf("%w: the cluster wants another login than ours: muster submit yarn --format shell submits by "+
		"Hadoop's own client, after kinit", err)
}

// application is how one stands.
type application struct {
	State, FinalStatus, Diagnostics string
	TrackingURL                     string `json:"trackingUrl"`
}

func (r *restClient) application(ctx context.Context, id string) (job.State, error) {
	if err := r.open(ctx); err != nil {
		return job.State{}, err
	}
	var answer struct{ App application }
	err := r.api.Call(ctx, http.MethodGet, "/ws/v1/cluster/apps/"+url.PathEscape(id), nil, &answer)
	if job.Missing(err) {
		return job.State{
			Word: "forgotten", Over: true, Why: "the ResourceManager does not know the application any more",
		}, nil
	}
	if err != nil {
		return job.State{}, fmt.Errorf("yarn at %s: %w", r.api.Base, err)
	}
	return answer.App.standing(), nil
}

func (a application) standing() job.State {
	s := job.State{Word: a.State, Why: job.OneLine(a.Diagnostics)}
	switch a.State {
	case "FINISHED", "FAILED", "KILLED":
		s.Over, s.OK = true, a.FinalStatus == "SUCCEEDED"
		if a.State == "FINISHED" {
			s.Word += " " + a.FinalStatus
		}
	}
	return s
}

func (r *restClient) kill(ctx context.Context, id string) error {
	if err := r.open(ctx); err != nil {
		return err
	}
	at := "/ws/v1/cluster/apps/" + url.PathEscape(id) + "/state"
	err := r.api.Call(ctx, http.MethodPut, at, []byte(`{"state":"KILLED"}`), nil)
	if err != nil && !job.Missing(err) {
		return fmt.Errorf("yarn at %s: %w", r.api.Base, err)
	}
	return nil
}

// Service is one of YARN's service API.
type Service struct {
	*restClient
	// Definition is what room render wrote.
	Definition string
	// Kept reads the definition that YARN keeps of a service by its name; its REST tells nothing of one that has
	// ended. Nil: there is no way to it.
	Kept func(ctx context.Context, name string) ([]byte, error)
	// Priority is what its application gets once it is there: no definition says it. Empty: the queue's.
	Priority string
	Warn     io.Writer

	name, id string
}

// OpenService is a service that was submitted, by the id of its application.
func OpenService(r job.Request, name, id string) (*Service, error) {
	manager, err := findManager(r)
	return &Service{restClient: manager, name: name, id: id}, err
}

// definition is what we read of a service.
type definition struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Description is what room render says of the job: what wrote it, the app and the run.
	Description string `json:"description"`

	ID    string `json:"id"`
	State string `json:"state"`

	Components []serviceComponent `json:"components"`
}

type serviceComponent struct {
	Name       string                   `json:"name"`
	Wanted     int                      `json:"number_of_containers"`
	Containers []struct{ State string } `json:"containers"`
}

// ended are the containers that are not started again.
func (c serviceComponent) ended() int {
	n := 0
	for _, one := range c.Containers {
		if one.State == "SUCCEEDED" || one.State == "FAILED" {
			n++
		}
	}
	return n
}

// runs tells whether YARN has or may have containers of it.
func (s definition) runs() bool {
	switch s.State {
	case "STOPPED", "FAILED", "SUCCEEDED":
		return false
	}
	return true
}

// app is the one that room render wrote the service for; empty: it was written by other means.
func (s definition) app() string {
	_, text, ours := strings.Cut(s.Description, "written by muster render yarn")
	_, text, named := strings.Cut(text, "| App ")
	app, _, ended := strings.Cut(text, ", run ")
	if !ours || !named || !ended {
		return ""
	}
	return app
}

// Find is the application of a service that a submit of this app began and has not told of; empty: there is none.
func (y *Service) Find(ctx context.Context, app string) (id string, err error) {
	if err := y.open(ctx); err != nil {
		return "", err
	}
	now, err := y.look(ctx)
	if err != nil && !job.Missing(err) {
		return "", fmt.Errorf("yarn at %s: %w", y.api.Base, y.wanting(err))
	}
	if err != nil || now.app() != app {
		return "", nil
	}
	y.id = now.ID
	return now.ID, nil
}

// Start submits the service and returns its application's id. What is left of an earlier run of that name is
// forgotten; one that runs is ErrRuns, one that was not ours is ErrForeign: it may only rest for a while.
func (y *Service) Start(ctx context.Context) (id string, err error) {
	if err := y.open(ctx); err != nil {
		return "", err
	}
	var wanted definition
	if err := json.Unmarshal([]byte(y.Definition), &wanted); err != nil {
		return "", fmt.Errorf("yarn: service: %w", err)
	}
	y.name = wanted.Name
	last, err := y.look(ctx)
	switch {
	case err == nil && last.runs():
		return "", fmt.Errorf("yarn: service %s %w, as version %s: end it with muster stop where it is the run of "+
			"that name, or yarn app -stop %s, or give another --app-id", y.name, job.ErrRuns, last.Version, y.name)
	case err == nil:
		if err := y.ours(ctx, wanted); err != nil {
			return "", err
		}
		if err := y.forget(ctx); err != nil {
			return "", err
		}
	case !job.Missing(err):
		return "", fmt.Errorf("yarn at %s: %w", y.api.Base, y.wanting(err))
	}
	if err := y.api.Send(ctx, http.MethodPost, "/app/v1/services", []byte(y.Definition)); err != nil {
		return "", fmt.Errorf("yarn at %s: %w", y.api.Base, y.wanting(err))
	}
	now, err := y.look(context.WithoutCancel(ctx))
	if err != nil || now.ID == "" {
		return "", errors.Join(fmt.Errorf("yarn at %s: %w: service %s was taken, and has no application",
			y.api.Base, job.ErrUnknown, y.name), err)
	}
	y.id = now.ID
	y.prioritize(context.WithoutCancel(ctx))
	return y.id, nil
}

// prioritize tells the ResourceManager of the priority. The job runs without it as well.
func (y *Service) prioritize(ctx context.Context) {
	if y.Priority == "" {
		return
	}
	at := "/ws/v1/cluster/apps/" + url.PathEscape(y.id) + "/priority"
	var has struct{ Priority json.Number }
	err := y.api.Call(ctx, http.MethodPut, at, []byte(`{"priority":`+y.Priority+`}`), &has)
	switch {
	case err != nil:
		fmt.Fprintf(y.Warn, "priority %s: yarn at %s: %v; yarn application -appId %s -updatePriority %s says it "+
			"again\n", y.Priority, y.api.Base, err, y.id, y.Priority)
	case has.Priority.String() != y.Priority:
		fmt.Fprintf(y.Warn, "priority %s: YARN gives %s: yarn.cluster.max-application-priority is the most\n",
			y.Priority, has.Priority)
	}
}

// ours refuses a service of our name that was written for another app, or not by muster.
func (y *Service) ours(ctx context.Context, wanted definition) error {
	advice := "give another --app-id, or, where nobody wants it any more, yarn app -destroy " + y.name
	if y.Kept == nil {
		return fmt.Errorf("yarn: service %s, which has ended, %w as far as can be told from here: %s",
			y.name, job.ErrForeign, advice)
	}
	text, err := y.Kept(ctx, y.name)
	if err != nil {
		return fmt.Errorf("yarn: service %s, which has ended, %w as far as can be told from here: %w; %s",
			y.name, job.ErrForeign, err, advice)
	}
	var last definition
	if json.Unmarshal(text, &last) != nil || last.app() == "" || last.app() != wanted.app() {
		return fmt.Errorf("yarn: service %s, which has ended, %w: %s", y.name, job.ErrForeign, advice)
	}
	return nil
}

func (y *Service) path() string { return "/app/v1/services/" + url.PathEscape(y.name) }

func (y *Service) look(ctx context.Context) (s definition, err error) {
	err = y.api.Call(ctx, http.MethodGet, y.path(), nil, &s)
	return s, err
}

// forget takes a service away that has ended: its definition lies in the user's home and keeps the name.
func (y *Service) forget(ctx context.Context) error {
	if err := y.api.Call(ctx, http.MethodDelete, y.path(), nil, nil); err != nil && !job.Missing(err) {
		return fmt.Errorf("yarn at %s: service %s of an earlier run: %w", y.api.Base, y.name, err)
	}
	return nil
}

// Grow has YARN start the agents that the components lack for so many instances. It takes none away: YARN would choose
// which, and agents that a flex has removed end by themselves.
func (y *Service) Grow(ctx context.Context, counts map[string]int) error {
	if err := y.open(ctx); err != nil {
		return err
	}
	now, err := y.look(ctx)
	if err != nil {
		return fmt.Errorf("yarn at %s: %w", y.api.Base, y.wanting(err))
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		there := yarn.ServiceName(name)
		at := slices.IndexFunc(now.Components, func(c serviceComponent) bool { return c.Name == there })
		if at < 0 {
			return fmt.Errorf("yarn at %s: service %s has no component %s: it was submitted without an instance of "+
				"it; its next start has it", y.api.Base, y.name, there)
		}
		c := now.Components[at]
		more := counts[name] - (c.Wanted - c.ended())
		if more <= 0 {
			continue
		}
		text, err := json.Marshal(map[string]any{"name": c.Name, "number_of_containers": c.Wanted + more})
		if err == nil {
			err = y.api.Call(ctx, http.MethodPut, y.path()+"/components/"+url.PathEscape(c.Name), text, nil)
		}
		if err != nil {
			return fmt.Errorf("yarn at %s: %w", y.api.Base, err)
		}
	}
	return nil
}

// Destroy has YARN end the service, if it runs, and forget it.
func (y *Service) Destroy(ctx context.Context, app string) error {
	if err := y.open(ctx); err != nil {
		return err
	}
	switch now, err := y.look(ctx); {
	case err != nil && !job.Missing(err):
		return fmt.Errorf("yarn at %s: %w", y.api.Base, y.wanting(err))
	case err == nil && now.runs() && now.app() != app:
		return fmt.Errorf("yarn at %s: service %s, which runs, %w", y.api.Base, y.name, job.ErrForeign)
	}
	return y.forget(ctx)
}

// State is that of the application; while it runs, with how many of its containers do.
func (y *Service) State(ctx context.Context) (job.State, error) {
	state, err := y.application(ctx, y.id)
	if err != nil || state.Over || state.Word != "RUNNING" {
		return state, err
	}
	now, err := y.look(ctx)
	if err != nil { // its master may be on its way out
		return state, nil //nolint:nilerr // the application's word stands
	}
	var parts []string
	for _, c := range now.Components {
		ready := 0
		for _, one := range c.Containers {
			if one.State == "READY" {
				ready++
			}
		}
		if ready < c.Wanted {
			parts = append(parts, fmt.Sprintf("%d of %d containers of %s are up", ready, c.Wanted, c.Name))
		}
	}
	state.Why = strings.Join(parts, ", ")
	return state, nil
}

// Stop has YARN end the service.
func (y *Service) Stop(ctx context.Context) error {
	if err := y.open(ctx); err != nil {
		return err
	}
	err := y.api.Call(ctx, http.MethodPut, y.path(), []byte(`{"state":"STOPPED"}`), nil)
	if err != nil && !job.Missing(err) {
		return fmt.Errorf("yarn at %s: %w", y.api.Base, err)
	}
	return nil
}

// Hints are the launcher's own commands that follow the job and end it.
func (y *Service) Hints() (follow, end string) {
	return "yarn app -status " + y.name + " (logs: yarn logs -applicationId " + y.id + ")", "yarn app -stop " + y.name
}
