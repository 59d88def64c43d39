package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/muster-agent/muster/shim/launcher/job"
)

// client submits by kubectl, to the cluster and as the user of its configuration.
type client struct {
	// Objects are what room render wrote, YAML.
	Objects string
	// Namespace is that of the objects; empty: kubectl's own.
	Namespace string

	job.Runner
	names []string // jobset.jobset.x-k8s.io/d1, service/d1, job.batch/d1-worker
	app   string   // as the label of all of them has it
}

func (k *client) kubectl(words ...string) []string {
	all := []string{"kubectl"}
	if k.Namespace != "" {
		all = append(all, "--namespace", k.Namespace)
	}
	return append(all, words...)
}

// Start creates the objects. The id is their names, with commas between them. What is left of an earlier run is
// deleted before: the template of a Job cannot be changed. One that has not ended is ErrRuns; anything of those names
// without our labels is ErrForeign.
func (k *client) Start(ctx context.Context) (id string, err error) {
	there, err := k.get(ctx)
	if err != nil {
		return "", err
	}
	wanted, err := k.wanted()
	if err != nil {
		return "", err
	}
	for _, o := range wanted {
		k.names = append(k.names, strings.ToLower(o.Kind)+"/"+o.Metadata.Name)
	}
	k.app = wanted[0].Metadata.Labels[appLabel]
	if err := foreign(there, k.app); err != nil {
		return "", err
	}
	if len(there) > 0 {
		if now := stateOf(there); !now.Over {
			return "", fmt.Errorf("k8s: %s %w: end it with muster stop and kubectl delete, or give another --app-id",
				there[0].Metadata.Name, job.ErrRuns)
		}
		words := k.kubectl("delete", "--filename", "-", "--ignore-not-found", "--cascade=foreground",
			"--timeout="+deletePatience.String())
		if _, err := k.Run(ctx, k.Objects, words...); err != nil {
			return "", fmt.Errorf("k8s: what is left of the last run: %w", err)
		}
	}
	// To create writes over nothing that has come to those names meanwhile. The annotation is for who applies them by
	// hand later.
	said, err := k.Send(ctx, k.Objects, k.kubectl("create", "--save-config", "--filename", "-", "--output", "name")...)
	if errors.Is(err, job.ErrUnknown) {
		return "", fmt.Errorf("k8s: %w", err)
	}
	k.names = strings.Fields(said)
	if err != nil {
		return "", errors.Join(fmt.Errorf("k8s: %w", err), k.takeBack(ctx))
	}
	return strings.Join(k.names, ","), nil
}

// deletePatience is how long what is left of an earlier run may take to go: a pod on a host that is lost does not go
// by itself.
const deletePatience = job.Patience / 2

// takeBack deletes what was created of a job of which something was refused.
func (k *client) takeBack(ctx context.Context) error {
	if len(k.names) == 0 {
		return nil
	}
	words := append(k.kubectl("delete", "--ignore-not-found", "--wait=false"), k.names...)
	_, err := k.Run(context.WithoutCancel(ctx), "", words...)
	if err != nil {
		return fmt.Errorf("k8s: %s stay: %w", strings.Join(k.names, ", "), err)
	}
	return nil
}

// object is what we read of a JobSet, a Job or a Service; Services have no end.
type object struct {
	Kind     string
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Status struct {
		Conditions []struct{ Type, Status, Reason, Message string }
	}
}

// appLabel is on all that room render writes.
const appLabel = "muster-agent/app"

// wanted are the objects that room render wrote.
func (k *client) wanted() (all []object, err error) {
	for texts := yaml.NewDecoder(strings.NewReader(k.Objects)); ; {
		var o object
		err := texts.Decode(&o)
		if errors.Is(err, io.EOF) && len(all) > 0 {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("k8s: objects: %w", err)
		}
		all = append(all, o)
	}
}

// foreign refuses objects of our names that are not of our app: they would be deleted.
func foreign(there []object, app string) error {
	for _, o := range there {
		if label := o.Metadata.Labels[appLabel]; label == "" || label != app {
			return fmt.Errorf("k8s: %s %s %w, by its label %s: give another --app-id",
				o.Kind, o.Metadata.Name, job.ErrForeign, appLabel)
		}
	}
	return nil
}

// get asks for what is there of our names.
func (k *client) get(ctx context.Context) ([]object, error) {
	said, err := k.Run(ctx, k.Objects, k.kubectl("get", "--filename", "-", "--ignore-not-found", "--output", "json")...)
	if err != nil {
		return nil, fmt.Errorf("k8s: %w", err)
	}
	return readObjects(said)
}

// readObjects reads one object, or a list of them.
func readObjects(text string) ([]object, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var one object
	var list struct{ Items []object }
	if err := json.Unmarshal([]byte(text), &one); err != nil {
		return nil, fmt.Errorf("k8s: kubectl get: %w", err)
	}
	if one.Kind != "List" {
		return []object{one}, nil
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("k8s: kubectl get: %w", err)
	}
	return list.Items, nil
}

// State is that of the JobSet, or of all Jobs.
func (k *client) State(ctx context.Context) (job.State, error) {
	there, err := k.get(ctx)
	if err != nil {
		return job.State{}, err
	}
	return stateOf(there), nil
}

// stateOf reads the conditions: Complete and Failed end a Job, Completed and Failed a JobSet. A Service alone is what a
// job has left.
func stateOf(there []object) job.State {
	var states []job.State
	for _, one := range there {
		if one.Kind != "JobSet" && one.Kind != "Job" {
			continue
		}
		state := job.State{Word: "running"}
		for _, c := range one.Status.Conditions {
			if c.Status != "True" {
				continue
			}
			switch c.Type {
			case "Complete", "Completed":
				state = job.State{Word: "completed", Over: true, OK: true}
			case "Failed":
				state = job.State{Word: "failed", Over: true}
				state.Why = job.OneLine(one.Metadata.Name + ": " + c.Reason + job.After(": ", c.Message))
			case "Suspended":
				state.Word = "suspended"
			}
		}
		states = append(states, state)
	}
	if len(states) == 0 {
		return job.State{Word: "deleted", Over: true, Why: "the cluster does not know the job any more"}
	}
	return job.Together(states)
}

// Stop deletes the objects: pods get SIGTERM.
func (k *client) Stop(ctx context.Context) error {
	words := k.kubectl("delete", "--filename", "-", "--ignore-not-found", "--wait=false")
	if _, err := k.Run(ctx, k.Objects, words...); err != nil {
		return fmt.Errorf("k8s: %w", err)
	}
	return nil
}

// Hints are the launcher's own commands that follow the job and end it.
func (k *client) Hints() (follow, end string) {
	names := strings.Join(k.names, " ")
	follow = strings.Join(k.kubectl("get", names), " ")
	if k.app != "" {
		follow += " (logs: " + strings.Join(k.kubectl("logs", "--prefix", "--selector", appLabel+"="+k.app), " ") + ")"
	}
	return follow, strings.Join(k.kubectl("delete", names), " ")
}
