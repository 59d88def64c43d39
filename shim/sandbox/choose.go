package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/muster-agent/muster/shim/sandbox/cgroup"
	"github.com/muster-agent/muster/shim/sandbox/container"
	"github.com/muster-agent/muster/shim/sandbox/subids"
)

// Choice is an engine, and why it is that one.
type Choice struct {
	Engine Engine
	Why    string
	// Support is what this host permits.
	Support Support
}

// Support says for each engine why this host does not permit it; "" when it does. The process engine needs nothing.
type Support struct {
	Tree              cgroup.Tree
	Container, Cgroup string
}

// TryIDs tries whether this host makes user namespaces with ids of a pool.
func TryIDs(pool subids.Pool) error {
	return container.TryIDs(subids.New(subids.Block{UID: pool.UIDs.First, GID: pool.GIDs.First}, nil, nil))
}

// errNoSuchEngine says that no engine has the name.
var errNoSuchEngine = errors.New("no such engine")

// The engines' names.
const (
	nameContainer = "container"
	nameCgroup    = "cgroup"
	NameProcess   = "process"
)

// EngineNames are the engines, best first.
func EngineNames() []string { return []string{nameContainer, nameCgroup, NameProcess} }

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

// Choose returns the engine of a name, or with `auto` the best one that the host permits. Auto takes a container only
// where there is a cgroup too, for without one most limits are not held; an app with a root of its own needs a
// container in any case. An engine that is asked for by name is taken whatever limits it cannot hold, unless the host
// does not permit it.
func Choose(ctx context.Context, name string, ownRoot bool) (Choice, error) {
	if name != "auto" && !slices.Contains(EngineNames(), name) {
		return Choice{}, fmt.Errorf("%q: %w", name, errNoSuchEngine)
	}
	if name == NameProcess {
		return Choice{Engine: Process{}, Why: asked + watched}, nil
	}
	s, err := Look(ctx)
	if err != nil {
		return Choice{}, err
	}
	name, why, err := s.decide(name, os.Geteuid() == 0, ownRoot)
	if err != nil {
		return Choice{}, err
	}
	engine := map[string]Engine{
		nameContainer: Container{Tree: s.Tree}, nameCgroup: Cgroup{Tree: s.Tree},
		NameProcess: Process{},
	}[name]
	return Choice{Engine: engine, Why: why, Support: s}, nil
}

const (
	asked   = "asked for by --engine"
	watched = "; memory is watched once a second"
)

// decide is Choose without the host.
func (s Support) decide(name string, root, ownRoot bool) (chosen, why string, err error) {
	lacks := map[string]string{nameContainer: s.Container, nameCgroup: s.Cgroup}
	switch {
	case name != "auto" && lacks[name] != "":
		return "", "", fmt.Errorf("this host does not permit it: %s", lacks[name])
	case name != "auto":
		return name, asked, nil
	case s.Container == "" && s.Cgroup == "" && root:
		return nameContainer, "root, and a cgroup that can be written", nil
	case s.Container == "" && s.Cgroup == "":
		return nameContainer, "user namespaces, and a cgroup that is delegated", nil
	case s.Container == "" && ownRoot:
		return nameContainer, "an image needs one; no cgroup: " + s.Cgroup + watched, nil
	case s.Cgroup == "":
		return nameCgroup, "a cgroup that can be written; no container: " + s.Container, nil
	case s.Container == "":
		return NameProcess, "no cgroup: " + s.Cgroup + watched, nil
	}
	return NameProcess, "no container: " + s.Container + "; no cgroup: " + s.Cgroup + watched, nil
}
