package slider

import (
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"strconv"
	"time"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/view"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/publisher"
	"github.com/muster-agent/muster/shim/status"
)

// description is Slider's ClusterDescription, as far as muster has something to say.
type description struct {
	Version    string                       `json:"version"` // of this form
	Name       string                       `json:"name"`
	Type       string                       `json:"type"`
	State      int                          `json:"state"`      // 1 submitted, 2 created, 3 live, 4 stopped
	CreateTime int64                        `json:"createTime"` // ms
	UpdateTime int64                        `json:"updateTime"` // ms
	Info       map[string]string            `json:"info"`
	Statistics map[string]map[string]int    `json:"statistics"` // by component
	Instances  map[string][]string          `json:"instances"`  // the live containers, by component
	Roles      map[string]map[string]string `json:"roles"`      // resources, by component
	// Components and Liveness are those of application/live.
	Components json.RawMessage `json:"components"`
	Liveness   json.RawMessage `json:"liveness"`
	Status     struct {
		Live map[string]map[string]node `json:"live"` // by component and container
	} `json:"status"`
}

// node is Slider's ClusterNode, with what muster knows besides.
type node struct {
	Name       string         `json:"name"`
	Role       string         `json:"role"`
	State      int            `json:"state"`
	Host       string         `json:"host"`
	CreateTime int64          `json:"createTime"` // ms
	StartTime  int64          `json:"startTime"`
	Phase      string         `json:"phase"`
	Attempt    int            `json:"attempt"`
	Ports      map[string]int `json:"ports"`
}

// liveComponent is a component of application/live/components.
type liveComponent struct {
	Desired, Actual, Requested, TotalRequested      int
	Failed, FailedRecently, NodeFailed, StartFailed int
	Started, Completed, Preempted                   int
	PendingAntiAffineRequestCount                   int
}

// statistics are a component's numbers by the names of Slider's StatusKeys.
func (l liveComponent) statistics() map[string]int {
	return map[string]int{
		"containers.desired": l.Desired, "containers.live": l.Actual,
		"containers.active.requests": l.Requested, "containers.requested": l.TotalRequested,
		"containers.failed": l.Failed, "containers.failed.recently": l.FailedRecently,
		"containers.failed.node": l.NodeFailed, "containers.failed.preempted": l.Preempted,
		"containers.completed": l.Completed, "containers.start.started": l.Started,
		"containers.start.failed": l.StartFailed, "containers.anti-affine.pending": l.PendingAntiAffineRequestCount,
	}
}

// printStatus prints the description.
func printStatus(ctx context.Context, c *call) error {
	a, err := c.open(ctx)
	if err != nil {
		return err
	}
	d, err := a.describe(ctx)
	if err != nil {
		return err
	}
	return c.print(d)
}

// writeReport writes the description of an app to --out, where it is given.
func (a *app) writeReport(ctx context.Context) error {
	if !a.has("--out") {
		return nil
	}
	d, err := a.describe(ctx)
	if err != nil {
		return err
	}
	return a.print(d)
}

// describe is the description of an app as it is now.
func (a *app) describe(ctx context.Context) (description, error) {
	f, v, err := a.view(ctx)
	if err != nil {
		return description{}, err
	}
	d := description{
		Version: "1.0", Name: a.name, Type: "agent", State: stateNumber(a.state(&f)), Info: a.info(&f, time.Now()),
		CreateTime: a.record.Created.UnixMilli(), UpdateTime: a.record.Updated.UnixMilli(),
		Statistics: map[string]map[string]int{}, Instances: map[string][]string{},
		Roles: map[string]map[string]string{},
	}
	if d.Components, err = answer(v, "application", "live", "components"); err != nil {
		return d, err
	}
	if d.Liveness, err = answer(v, "application", "live", "liveness"); err != nil {
		return d, err
	}
	live := map[string]liveComponent{}
	if err := json.Unmarshal(d.Components, &live); err != nil {
		return d, exit.With(exit.Internal, err)
	}
	for name, c := range live {
		d.Statistics[name], d.Instances[name] = c.statistics(), []string{}
	}
	d.describeRoles(v, live)
	d.describeNodes(view.Of(f).Instances, a.living(&f))
	return d, nil
}

func (d *description) describeRoles(v publisher.View, live map[string]liveComponent) {
	for _, c := range v.Components {
		role := map[string]string{}
		maps.Copy(role, c.Resources)
		n := live[c.Name]
		const count = "yarn.component.instances"
		for key, value := range map[string]int{
			count: n.Desired, count + ".actual": n.Actual, count + ".requesting": n.Requested,
			count + ".failed": n.Failed, count + ".started": n.Started, count + ".completed": n.Completed,
			"yarn.role.priority": c.Priority,
		} {
			role[key] = strconv.Itoa(value)
		}
		d.Roles[c.Name] = role
	}
}

// living are the instances whose agents answer on this host; of an app on YARN, those of which the registry says that
// they live.
func (a *app) living(f *apps.Facts) map[string]bool {
	live := map[string]bool{}
	for name := range f.States {
		live[name] = true
	}
	if a.record.Yarn != nil && f.Registry != nil {
		for _, m := range f.Registry.Members {
			live[m.Instance.String()] = m.Live
		}
	}
	return live
}

// describeNodes lists the instances that live.
func (d *description) describeNodes(rows []status.Instance, live map[string]bool) {
	d.Status.Live = map[string]map[string]node{}
	for _, row := range rows {
		if !live[row.Instance] {
			continue
		}
		d.Instances[row.Component] = append(d.Instances[row.Component], row.Instance)
		if d.Status.Live[row.Component] == nil {
			d.Status.Live[row.Component] = map[string]node{}
		}
		since := row.Since.UnixMilli()
		d.Status.Live[row.Component][row.Instance] = node{
			Name: row.Instance, Role: row.Component, State: stateLive, Host: row.Host, Phase: row.Phase,
			CreateTime: since, StartTime: since, Attempt: row.Attempt, Ports: row.Ports,
		}
	}
}

// info says more of the whole app: by Slider's names where there are any.
func (a *app) info(f *apps.Facts, now time.Time) map[string]string {
	info := map[string]string{
		"muster.phase": "created", "muster.folder": a.dir, "yarn.state": a.state(f),
	}
	if y := a.record.Yarn; y == nil {
		info["muster.work"], info["muster.logs"] = a.work(), filepath.Join(a.work(), "log")
	} else if info["yarn.queue"] = y.Queue; y.ID != "" {
		info["yarn.application.id"] = y.ID
	}
	add := func(name string, at time.Time) {
		info[name] = at.UTC().Format(time.RFC3339)
		info[name+".millis"] = strconv.FormatInt(at.UnixMilli(), 10)
	}
	add("create.time", a.record.Created)
	add("status.time", now)
	if f.Local == nil && f.Registry == nil {
		return info
	}
	if at := f.Started(); !at.IsZero() {
		add("live.time", at)
	}
	info["muster.phase"], info["muster.run"] = f.Phase(), f.Run()
	if v := f.Verdict(); v != nil {
		info["muster.verdict"] = exit.VerdictText(*v)
	} else if outcome := f.Outcome(); outcome != nil {
		info["muster.verdict"] = *outcome
	}
	return info
}
