package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/muster-agent/muster/shim/sandbox/cgroup"
	"github.com/muster-agent/muster/shim/sandbox/container"
)

// Choice is an engine, and why it is that one.
type Choice struct {
	Engine Engine
	Why    string
	// Standing is what this host permits.
	Support Support
}

// Standing says of each engine what keeps this host from it; "" when nothing does. The process engine needs nothing.
type Support struct {
	Tree              cgroup.Tree
	Container, Cgroup string
}

// errNoSuchEngine says that a name is no engine's.
var errNoSuchEngine = errors.New("no such engine")

// The engines' names.
const (
	NameContainer = "container"
	NameCgroup    = "cgroup"
	NameProcess   = "process"
)

// EngineNames are the engines, best first.
func EngineNames() []string { return []string{NameContainer, NameCgroup, NameProcess} }

// Look finds out what this host permits: it makes a container's namespaces and mounts for a moment.
func Look(ctx context.Context) (Support, error) {
	tree, err := cgroup.Discover(cgroup.Host{})
	if err != nil {
		return Support{}, err
	}
	s := Support{Tree: tree}
	s.Cgroup = tree.Cannot()["memory_mb"]
	if ok, why := container.Probe(ctx); !ok {
		s.Container = why
	}
	return s, nil
}

// Choose gives the engine of a name, or with `auto` the best that the host permits: a container wants a cgroup
// too, or most of its limits would be words, unless there must be one because the app has a root of its own. One that
// is insisted on is tried whatever it cannot hold; only what cannot be had at all is an error.
func Choose(ctx context.Context, name string, ownRoot bool) (Choice, error) {
	if name != "auto" && !slices.Contains(EngineNames(), name) {
		return Choice{}, fmt.Errorf("%q: %w", name, errNoSuchEngine)
	}
	if name == NameProcess {
		return Choice{Engine: Process{}, Why: insisted + watched}, nil
	}
	s, err := Look(ctx)
	if err != nil {
		return Choice{}, err
	}
	name, why, err := s.decide(name, os.Geteuid() == 0, ownRoot)
	if err != nil {
		return Choice{}, err
	}
	engine := map[string]Engine{NameContainer: Container{Tree: s.Tree}, NameCgroup: Cgroup{Tree: s.Tree}, NameProcess: Process{}}[name]
	return Choice{Engine: engine, Why: why, Support: s}, nil
}

const (
	insisted = "asked for by --engine"
	watched  = "; memory is watched once a second"
)

// decide is Choose without the host.
func (s Support) decide(name string, root, ownRoot bool) (chosen, why string, err error) {
	lacks := map[string]string{NameContainer: s.Container, NameCgroup: s.Cgroup}
	switch {
	case name != "auto" && lacks[name] != "":
		return "", "", fmt.Errorf("this host does not permit it: %s", lacks[name])
	case name != "auto":
		return name, insisted, nil
	case s.Container == "" && s.Cgroup == "" && root:
		return NameContainer, "root, and a cgroup that can be written", nil
	case s.Container == "" && s.Cgroup == "":
		return NameContainer, "user namespaces, and a cgroup that is delegated", nil
	case s.Container == "" && ownRoot:
		return NameContainer, "an image needs one; no cgroup: " + s.Cgroup + watched, nil
	case s.Cgroup == "":
		return NameCgroup, "a cgroup that can be written; no container: " + s.Container, nil
	case s.Container == "":
		return NameProcess, "no cgroup: " + s.Cgroup + watched, nil
	}
	return NameProcess, "no container: " + s.Container + "; no cgroup: " + s.Cgroup + watched, nil
}
