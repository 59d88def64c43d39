package publisher

import (
	"cmp"
	"slices"
	"time"

	"github.com/muster-agent/muster/registry"
)

// View is all that is answered from. It holds no secrets: whoever runs in the container may read it.
type View struct {
	App        appView
	Members    []memberView    // in rank order
	Groups     []groupView     // in metainfo order
	Components []componentView // in rank order
	Over       bool            // no run of the app lives: nothing is asked for
	// Configs are the published configurations, by dictionary.
	Configs map[string]configuration
	// AppConf and Resources are the global sections of the two documents.
	AppConf   map[string]string
	Resources map[string]string
}

// appView names the app.
type appView struct {
	Name    string // the instance's name, the scripts' serviceName
	ID      string // the app id
	User    string // who submitted it; never empty
	Version string // of the definition; may be empty
	Created time.Time
}

// memberView is one instance.
type memberView struct {
	Component string
	Index     int
	Instance  string // `worker-1`
	Host      string // as the exports name it
	// ContainerID is the launcher's word for the container; empty: the instance's name stands for it.
	ContainerID string
	Tag         string         // serial number within the component
	Ports       map[string]int // by port name
	Exports     map[string]string
	// Since is when it published its exports. The entries of a group stand in this order, by rank where it is equal:
	// every member counts the same position for itself.
	Since           time.Time
	Phase           registry.Phase
	LogDir, WorkDir string
	// Up: the registry counts it among the living.
	Up bool
}

// groupView is an export group of metainfo.
type groupView struct {
	Name    string
	Exports []exported
}

// exported is a name of a group. Its values are the members', under `<group>.<name>`.
type exported struct {
	Name  string
	Level level
}

// level says whose an export is.
type level string

// The levels: a value for each container, or a single one.
const (
	levelComponent   level = "component"
	levelApplication level = "application"
)

// componentView is a role of the app.
type componentView struct {
	Name      string
	Instances int // wanted
	Priority  int
	// Resources and Config are its own keys in the two documents.
	Resources, Config map[string]string
	// What became of its containers so far. Started counts those that live, too.
	Started, Completed, Failed, FailedRecently int
	// Of the last end of each instance: the process never began; its host was lost; its launcher wanted the place.
	StartFailed, NodeFailed, Preempted int
}

// configuration is a published configuration.
type configuration struct {
	Entries map[string]string
	Updated time.Time
}

// published: what it exports counts. What has completed or is lost has disappeared, as its container has.
func (m memberView) published() bool {
	switch m.Phase {
	case registry.PhaseEnded, registry.PhaseFailed, registry.PhaseLeft, registry.PhaseLost:
		return false
	case registry.PhaseJoined, registry.PhaseReady:
		return m.Up
	}
	return false
}

func (m memberView) container() string { return cmp.Or(m.ContainerID, m.Instance) }

// arrived are the members whose exports count, in the order in which they published.
func (v View) arrived() []memberView {
	var out []memberView
	for _, m := range v.Members {
		if m.published() {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b memberView) int { return a.Since.Compare(b.Since) })
	return out
}

// millis counts from 1970 as Java does; 0 for no time.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// date prints a time as Java's Date does; empty for no time.
func date(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("Mon Jan 02 15:04:05 MST 2006")
}
