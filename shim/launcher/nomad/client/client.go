package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/muster-agent/muster/shim/launcher/job"
)

// client submits over Nomad's HTTP API, by the variables that Nomad's own client reads: NOMAD_ADDR, NOMAD_TOKEN,
// NOMAD_NAMESPACE, NOMAD_REGION, NOMAD_HTTP_AUTH, NOMAD_CACERT, NOMAD_CLIENT_CERT, NOMAD_CLIENT_KEY,
// NOMAD_TLS_SERVER_NAME, NOMAD_SKIP_VERIFY.
type client struct {
	// Address is that of any server or client; empty: NOMAD_ADDR, else http://127.0.0.1:4646.
	Address string
	// Job is what room render wrote: JSON with the member Job.
	Job string
	// Final are exit codes of an agent that starting it again does not change; Nomad itself starts it again after any
	// but 0.
	Final []int

	api job.API
	id  string
}

// jobStanding is what we read of a job.
type jobStanding struct {
	ID, Region, Namespace, Status string
	Meta                          map[string]string
	JobModifyIndex, Version       uint64
}

// Start registers the job and returns its id. A job of that name that muster has not made is ErrForeign, whether it
// runs or not. One of ours that is not dead is ErrRuns: Nomad would take the new one for its next version, and end
// the run that is there.
func (n *client) Start(ctx context.Context) (id string, err error) {
	var outer struct{ Job json.RawMessage }
	var wanted jobStanding
	if err := errors.Join(json.Unmarshal([]byte(n.Job), &outer), json.Unmarshal(outer.Job, &wanted)); err != nil {
		return "", fmt.Errorf("nomad: job: %w", err)
	}
	if err := n.open(wanted); err != nil {
		return "", fmt.Errorf("nomad: %w", err)
	}
	n.id = wanted.ID
	last, err := n.look(ctx)
	if job.Missing(err) && !strings.Contains(err.Error(), "job not found") {
		return "", fmt.Errorf("nomad: %w at %s: what answers there is not Nomad's HTTP API (%s), whose port is "+
			"4646; --address or NOMAD_ADDR says where it is", job.ErrUnreachable, n.api.Base, job.OneLine(err.Error()))
	}
	if err != nil && !job.Missing(err) {
		return "", fmt.Errorf("nomad at %s: %w", n.api.Base, err)
	}
	if err == nil && last.Meta["muster_app"] != wanted.Meta["muster_app"] {
		return "", fmt.Errorf("nomad: job %s, which is %s, %w: give another --app-id, or, where nobody wants it "+
			"any more, nomad job stop -purge %s", n.id, last.Status, job.ErrForeign, n.id)
	}
	if err == nil && last.Status != "dead" {
		return "", fmt.Errorf("nomad: job %s %w, as run %s: end it with muster stop, or give another --app-id",
			n.id, job.ErrRuns, last.Meta["muster_run"])
	}
	text, err := json.Marshal(map[string]any{
		"Job": outer.Job, "EnforceIndex": true, "JobModifyIndex": last.JobModifyIndex,
	})
	if err != nil {
		return "", err
	}
	if err := n.api.Send(ctx, http.MethodPost, "/v1/jobs", text); err != nil {
		return "", fmt.Errorf("nomad at %s: %w", n.api.Base, err)
	}
	return n.id, nil
}

func (n *client) open(wanted jobStanding) error {
	address := cmp.Or(n.Address, os.Getenv("NOMAD_ADDR"), "http://127.0.0.1:4646")
	skip := os.Getenv("NOMAD_SKIP_VERIFY")
	base, client, err := job.HTTPClient(address, job.TLSFiles{
		CA: os.Getenv("NOMAD_CACERT"), Cert: os.Getenv("NOMAD_CLIENT_CERT"), Key: os.Getenv("NOMAD_CLIENT_KEY"),
		ServerName: os.Getenv("NOMAD_TLS_SERVER_NAME"), Unchecked: skip == "1" || skip == "true",
	})
	if err != nil {
		return err
	}
	n.api = job.API{Base: base, Client: client, Query: url.Values{}, Headers: http.Header{}}
	for name, value := range map[string]string{
		"namespace": cmp.Or(wanted.Namespace, os.Getenv("NOMAD_NAMESPACE")),
		"region":    cmp.Or(wanted.Region, os.Getenv("NOMAD_REGION")),
	} {
		if value != "" {
			n.api.Query.Set(name, value)
		}
	}
	if token := os.Getenv("NOMAD_TOKEN"); token != "" {
		n.api.Headers.Set("X-Nomad-Token", token)
	}
	if user, password, ok := strings.Cut(os.Getenv("NOMAD_HTTP_AUTH"), ":"); ok {
		var r http.Request
		r.Header = n.api.Headers
		r.SetBasicAuth(user, password)
	}
	return nil
}

func (n *client) path(rest string) string { return "/v1/job/" + url.PathEscape(n.id) + rest }

func (n *client) look(ctx context.Context) (now jobStanding, err error) {
	err = n.api.Call(ctx, http.MethodGet, n.path(""), nil, &now)
	return now, err
}

// allocation is what we read of one.
type allocation struct {
	Name, ClientStatus, NextAllocation string
	JobVersion                         uint64
	TaskStates                         map[string]struct {
		Events []struct {
			Type, DisplayMessage string
			ExitCode             int
		}
	}
}

// State tells how the job stands; of one that is pending why nothing is placed.
func (n *client) State(ctx context.Context) (job.State, error) {
	now, err := n.look(ctx)
	if job.Missing(err) {
		return job.State{Word: "purged", Over: true, Why: "Nomad does not know the job any more"}, nil
	}
	if err != nil {
		return job.State{}, fmt.Errorf("nomad at %s: %w", n.api.Base, err)
	}
	s := job.State{Word: now.Status, Over: now.Status == "dead"}
	var all []allocation
	if err := n.api.Call(ctx, http.MethodGet, n.path("/allocations"), nil, &all); err != nil {
		return s, fmt.Errorf("nomad at %s: %w", n.api.Base, err)
	}
	var failed []string
	alive := 0
	for _, a := range all {
		s.Futile = s.Futile || a.JobVersion == now.Version && a.futile(n.Final)
		if a.ClientStatus == "running" || a.ClientStatus == "pending" {
			alive++
		}
		gone := a.ClientStatus == "failed" || a.ClientStatus == "lost"
		if a.JobVersion == now.Version && a.NextAllocation == "" && gone {
			failed = append(failed, a.Name+" "+a.ClientStatus+job.After(": ", a.last()))
		}
	}
	slices.Sort(failed)
	failed = slices.Compact(failed)
	if s.Over && alive > 0 { // Nomad calls a job dead as soon as it is stopped, with its tasks in their grace
		s.Over, s.Why = false, fmt.Sprintf("allocations to end: %d", alive)
		return s, nil
	}
	s.OK = s.Over && len(failed) == 0
	if s.Over {
		s.Why = strings.Join(failed, "; ")
		return s, nil
	}
	unplaced, err := n.unplaced(ctx)
	if err != nil {
		return s, fmt.Errorf("nomad at %s: %w", n.api.Base, err)
	}
	s.Why = strings.Join(append(failed, unplaced...), "; ")
	return s, nil
}

// futile tells that a task has ended twice in a row with one of these codes, and does not run now. Nomad counts a
// restart as soon as it has decided on it, and keeps the last ten events of a task.
func (a allocation) futile(final []int) bool {
	for _, task := range a.TaskStates {
		ends, up := 0, false
		for _, e := range task.Events {
			switch {
			case e.Type == "Started":
				up = true
			case e.Type == "Terminated" && slices.Contains(final, e.ExitCode):
				ends, up = ends+1, false
			case e.Type == "Terminated":
				ends, up = 0, false
			}
		}
		if ends > 1 && !up {
			return true
		}
	}
	return false
}

// last is what Nomad says of the end of an allocation's task.
func (a allocation) last() string {
	for _, task := range a.TaskStates {
		for _, e := range slices.Backward(task.Events) {
			switch e.Type {
			case "Terminated", "Driver Failure", "Failed Artifact Download", "Setup Failure":
				return job.OneLine(e.DisplayMessage)
			}
		}
	}
	return ""
}

// unplaced says for each group without a place why that is, by the newest evaluation that knows.
func (n *client) unplaced(ctx context.Context) ([]string, error) {
	var evaluations []struct {
		Status         string
		ModifyIndex    uint64
		FailedTGAllocs map[string]struct {
			NodesEvaluated                         int
			ConstraintFiltered, DimensionExhausted map[string]int
		}
	}
	if err := n.api.Call(ctx, http.MethodGet, n.path("/evaluations"), nil, &evaluations); err != nil {
		return nil, err
	}
	var out []string
	newest := uint64(0)
	for _, e := range evaluations {
		if e.Status != "blocked" || e.ModifyIndex < newest {
			continue
		}
		newest, out = e.ModifyIndex, nil
		for _, group := range slices.Sorted(maps.Keys(e.FailedTGAllocs)) {
			f := e.FailedTGAllocs[group]
			why := slices.Concat(slices.Sorted(maps.Keys(f.DimensionExhausted)),
				slices.Sorted(maps.Keys(f.ConstraintFiltered)))
			out = append(out, fmt.Sprintf("%s finds no room on %d nodes%s",
				group, f.NodesEvaluated, job.After(": ", strings.Join(why, ", "))))
		}
	}
	return out, nil
}

// Stop has Nomad end the job: agents get SIGINT.
func (n *client) Stop(ctx context.Context) error {
	if err := n.api.Call(ctx, http.MethodDelete, n.path(""), nil, nil); err != nil && !job.Missing(err) {
		return fmt.Errorf("nomad at %s: %w", n.api.Base, err)
	}
	return nil
}

// Hints are the launcher's own commands that follow the job and end it.
func (n *client) Hints() (follow, end string) {
	words := func(verb ...string) string {
		all := append([]string{"nomad"}, verb...)
		for _, name := range []string{"namespace", "region"} {
			if v := n.api.Query.Get(name); v != "" {
				all = append(all, "-"+name+"="+v)
			}
		}
		return strings.Join(append(all, n.id), " ")
	}
	return words("job", "status") + " (its agents' logs: " + words("alloc", "logs", "-stderr", "-job") +
		"; a program's: nomad alloc fs ALLOCATION alloc/logs/muster/INSTANCE/stdout.log)", words("job", "stop")
}
