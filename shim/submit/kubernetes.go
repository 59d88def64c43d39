package submit

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// Kubernetes submits by kubectl, to the cluster and as the user of its configuration.
type Kubernetes struct {
	// Objects are what room render wrote, YAML.
	Objects string
	// Namespace is that of the objects; empty: kubectl's own.
	Namespace string

	names []string // jobset.jobset.x-k8s.io/d1, service/d1, job.batch/d1-worker
}

func (k *Kubernetes) kubectl(words ...string) []string {
	all := []string{"kubectl"}
	if k.Namespace != "" {
		all = append(all, "--namespace", k.Namespace)
	}
	return append(all, words...)
}

// Start applies the objects. The id is their names, with commas between them. What is left of an earlier run is deleted before:
// the template of a Job cannot be changed. One that has not ended is ErrRuns.
func (k *Kubernetes) Start(ctx context.Context) (id string, err error) {
	said, err := command(ctx, k.Objects, k.kubectl("get", "--filename", "-", "--ignore-not-found", "--output", "json")...)
	if err != nil {
		return "", fmt.Errorf("k8s: %w", err)
	}
	there, err := k.read(said)
	if err != nil {
		return "", err
	}
	if len(there) > 0 {
		if now := kubernetesState(there); !now.Over {
			return "", fmt.Errorf("k8s: %s %w: end it with muster stop and kubectl delete, or give another --app-id", there[0].Metadata.Name, ErrRuns)
		}
		if _, err := command(ctx, k.Objects, k.kubectl("delete", "--filename", "-", "--ignore-not-found", "--cascade=foreground")...); err != nil {
			return "", fmt.Errorf("k8s: what is left of the last run: %w", err)
		}
	}
	said, err = command(ctx, k.Objects, k.kubectl("apply", "--filename", "-", "--output", "name")...)
	if err != nil {
		return "", fmt.Errorf("k8s: %w", err)
	}
	k.names = strings.Fields(said)
	return strings.Join(k.names, ","), nil
}

// kubernetesObject is what we read of a JobSet or a Job.
type kubernetesObject struct {
	Kind     string
	Metadata struct{ Name string }
	Status   struct {
		Conditions []struct{ Type, Status, Reason, Message string }
	}
}

// read is one object, or a list of them; Services have no end.
func (k *Kubernetes) read(text string) ([]kubernetesObject, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var one kubernetesObject
	var list struct{ Items []kubernetesObject }
	if err := json.Unmarshal([]byte(text), &one); err != nil {
		return nil, fmt.Errorf("k8s: kubectl get: %w", err)
	}
	if one.Kind == "List" {
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return nil, fmt.Errorf("k8s: kubectl get: %w", err)
		}
	} else {
		list.Items = []kubernetesObject{one}
	}
	var jobs []kubernetesObject
	for _, o := range list.Items {
		if o.Kind == "JobSet" || o.Kind == "Job" {
			jobs = append(jobs, o)
		}
	}
	return jobs, nil
}

// State is that of the JobSet, or of all Jobs.
func (k *Kubernetes) State(ctx context.Context) (State, error) {
	said, err := command(ctx, k.Objects, k.kubectl("get", "--filename", "-", "--ignore-not-found", "--output", "json")...)
	if err != nil {
		return State{}, fmt.Errorf("k8s: %w", err)
	}
	jobs, err := k.read(said)
	if err != nil {
		return State{}, err
	}
	if len(jobs) == 0 {
		return State{Word: "deleted", Over: true, Why: "the cluster does not know the job any more"}, nil
	}
	return kubernetesState(jobs), nil
}

// kubernetesState reads the conditions: Complete and Failed end a Job, Completed and Failed a JobSet.
func kubernetesState(jobs []kubernetesObject) State {
	states := make([]State, len(jobs))
	for i, job := range jobs {
		states[i].Word = "running"
		for _, c := range job.Status.Conditions {
			if c.Status != "True" {
				continue
			}
			switch c.Type {
			case "Complete", "Completed":
				states[i] = State{Word: "completed", Over: true, OK: true}
			case "Failed":
				states[i] = State{Word: "failed", Over: true, Why: oneLine(job.Metadata.Name + ": " + c.Reason + after(": ", c.Message))}
			case "Suspended":
				states[i].Word = "suspended"
			}
		}
	}
	return together(states)
}

// Stop deletes the objects: pods get SIGTERM.
func (k *Kubernetes) Stop(ctx context.Context) error {
	if _, err := command(ctx, k.Objects, k.kubectl("delete", "--filename", "-", "--ignore-not-found", "--wait=false")...); err != nil {
		return fmt.Errorf("k8s: %w", err)
	}
	return nil
}

// Hints are the launcher's own commands that follow the job and end it.
func (k *Kubernetes) Hints() (follow, end string) {
	names := strings.Join(k.names, " ")
	return strings.Join(k.kubectl("get", names), " "), strings.Join(k.kubectl("delete", names), " ")
}
