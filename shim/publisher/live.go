package publisher

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/muster-agent/muster/appdef"
)

// stateLive is Slider's number for a container that runs.
const stateLive = 3

type containerInfo struct {
	ContainerID    string `json:"containerId"`
	Component      string `json:"component"`
	AppVersion     string `json:"appVersion,omitempty"`
	State          int    `json:"state"`
	CreateTime     int64  `json:"createTime"` // ms
	StartTime      int64  `json:"startTime"`
	CompletionTime int64  `json:"completionTime"`
	Host           string `json:"host"`
}

type componentInfo struct {
	Name      string `json:"name"`
	Priority  int    `json:"priority"`
	Desired   int    `json:"desired"`
	Actual    int    `json:"actual"`
	Releasing int    `json:"releasing"`
	placement
	containerCounts
	PendingAA       int      `json:"pendingAntiAffineRequestCount"`
	IsAAOutstanding bool     `json:"isAARequestOutstanding"`
	Containers      []string `json:"containers,omitempty"` // of one component; the list of all leaves it out
}

type placement struct {
	PlacementPolicy int `json:"placementPolicy"`
	Requested       int `json:"requested"`
}

// containerCounts are those of all containers that a component has had.
type containerCounts struct {
	Failed         int `json:"failed"`
	Started        int `json:"started"`
	StartFailed    int `json:"startFailed"`
	Completed      int `json:"completed"`
	TotalRequested int `json:"totalRequested"`
	NodeFailed     int `json:"nodeFailed"`
	FailedRecently int `json:"failedRecently"`
	Preempted      int `json:"preempted"`
}

type nodeInfo struct {
	Hostname    string               `json:"hostname"`
	State       string               `json:"state"`
	LastUpdated int64                `json:"lastUpdated"` // ms
	Entries     map[string]nodeEntry `json:"entries"`     // by component
}

type nodeEntry struct {
	LastUsed int64 `json:"lastUsed"` // ms
	Live     int   `json:"live"`
	Priority int   `json:"priority"`
}

type liveness struct {
	AllRequestsSatisfied bool  `json:"allRequestsSatisfied"`
	RequestsOutstanding  int   `json:"requestsOutstanding"`
	ActiveRequests       int   `json:"activeRequests"`
	LastAllocationTime   int64 `json:"lastAllocationTime"` // ms
}

func (v View) container(m memberView) containerInfo {
	at := millis(m.Since)
	return containerInfo{
		ContainerID: m.container(), Component: m.Component, AppVersion: v.App.Version, State: stateLive,
		CreateTime: at, StartTime: at, Host: m.Host,
	}
}

func (v View) component(c componentView) componentInfo {
	info := componentInfo{
		Name: c.Name, Priority: c.Priority, Desired: c.Instances,
		containerCounts: containerCounts{
			Failed: c.Failed, Started: c.Started, StartFailed: c.StartFailed, Completed: c.Completed,
			FailedRecently: c.FailedRecently, NodeFailed: c.NodeFailed, Preempted: c.Preempted,
		},
	}
	if n, err := strconv.Atoi(c.Resources["yarn.component.placement.policy"]); err == nil {
		info.PlacementPolicy = n
	}
	for _, m := range v.arrived() {
		if m.Component == c.Name {
			info.Actual++
			info.Containers = append(info.Containers, m.container())
		}
	}
	if !v.Over {
		info.Requested = max(0, info.Desired-info.Actual)
	}
	info.TotalRequested = info.Started + info.Requested
	info.Releasing = max(0, info.Actual-info.Desired)
	if info.PlacementPolicy&appdef.PlacedApart != 0 {
		info.PendingAA, info.IsAAOutstanding = info.Requested, info.Requested > 0
	}
	return info
}

// nodes are the hosts on which something lives, by name. Nothing is asked of a host by name here, and nothing that
// failed is kept by host: an entry has no such counts.
func (v View) nodes() []nodeInfo {
	all := map[string]nodeInfo{}
	for _, m := range v.arrived() {
		n, ok := all[m.Host]
		if !ok {
			n = nodeInfo{Hostname: m.Host, State: "RUNNING", Entries: map[string]nodeEntry{}}
		}
		e := n.Entries[m.Component]
		e.Live++
		e.LastUsed = millis(m.Since)
		e.Priority = v.priority(m.Component)
		n.Entries[m.Component], n.LastUpdated = e, e.LastUsed
		all[m.Host] = n
	}
	out := []nodeInfo{}
	for _, host := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[host])
	}
	return out
}

func (v View) priority(component string) int {
	for _, c := range v.Components {
		if c.Name == component {
			return c.Priority
		}
	}
	return 0
}

func getContainers(q question) (answer, error) {
	out := map[string]containerInfo{}
	for _, m := range q.view.arrived() {
		out[m.container()] = q.view.container(m)
	}
	return inJSON(out)
}

func getContainer(q question) (answer, error) {
	for _, m := range q.view.arrived() {
		if m.container() == q.names["container"] {
			return inJSON(q.view.container(m))
		}
	}
	return answer{}, notFound("unknown container: "+q.names["container"],
		"GET /application/live/containers lists those that live")
}

func getComponents(q question) (answer, error) {
	out := map[string]componentInfo{}
	for _, c := range q.view.Components {
		info := q.view.component(c)
		info.Containers = nil
		out[c.Name] = info
	}
	return inJSON(out)
}

func getComponent(q question) (answer, error) {
	for _, c := range q.view.Components {
		if c.Name == q.names["component"] {
			return inJSON(q.view.component(c))
		}
	}
	return answer{}, notFound("unknown component: "+q.names["component"], "GET /application/live/components lists them")
}

func getNodes(q question) (answer, error) { return inJSON(q.view.nodes()) }

func getNode(q question) (answer, error) {
	for _, n := range q.view.nodes() {
		if n.Hostname == q.names["host"] {
			return inJSON(n)
		}
	}
	return answer{}, notFound("unknown node: "+q.names["host"],
		"GET /application/live/nodes lists those on which something lives")
}

func getStatistics(q question) (answer, error) {
	out := map[string]int{
		"containers.live": len(q.view.arrived()), "containers.surplus": 0,
		"containers.unknown.completed": 0,
	}
	for _, c := range q.view.Components {
		out["containers.completed"] += c.Completed
		out["containers.failed"] += c.Failed
		out["containers.start.started"] += c.Started
		out["containers.start.failed"] += c.StartFailed
	}
	return inJSON(out)
}

func getLiveness(q question) (answer, error) {
	var l liveness
	for _, c := range q.view.Components {
		info := q.view.component(c)
		if !q.view.Over {
			l.RequestsOutstanding += info.Desired - info.Actual
		}
		l.ActiveRequests += info.Requested
	}
	l.AllRequestsSatisfied = l.RequestsOutstanding <= 0
	newest := time.Time{}
	for _, m := range q.view.arrived() {
		newest = m.Since // in this order
	}
	l.LastAllocationTime = millis(newest)
	return inJSON(l)
}
