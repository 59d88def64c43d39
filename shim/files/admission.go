package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/file"
)

// Admission says which paths of the host an app's definition may name, and how far the agent follows them for it.
type Admission struct {
	Work    string        // the work folder
	Default string        // the folder that the operator named as the default filesystem; empty: none
	Policy  policy.Policy // of the host's operator
	Root    string        // kind of the process's root, as plan.Root has it
	User    User          // of the process
}

// reserved are the names in the work folder that no process may own: what lies there is the agents'.
var reserved = []string{"package", "root", "log"}

// Reserved tells whether a path in the work folder, or that folder itself, belongs to the agents.
func (a Admission) Reserved(path string) bool {
	name := a.UnderWork(path)
	return slices.Contains(reserved, name) || name[0] == '.'
}

// UnderWork is the name in the work folder that a path in it goes through; "." is the work folder's own.
func (a Admission) UnderWork(path string) string {
	name, _ := filepath.Rel(a.Work, path) // the caller knows that it is in there
	first, _, _ := strings.Cut(name, "/")
	return first
}

// hostRead tells whether the process reads the host's own files, but those in folders that a container has of its own.
func (a Admission) hostRead() bool { return a.Root == plan.RootReadOnly || a.Root == plan.RootOverlay }

// confined tells whether the agent must not use its own rights for the process: the process is root in a container of
// an agent that is root.
func (a Admission) confined() bool {
	return a.Root != plan.RootHost && os.Geteuid() == 0 && (a.User.facts == nil || a.User.facts.UID == 0)
}

// Checkpoint refuses a checkpoint folder that the container does not have: what is saved there would be lost. A
// definition cannot choose what of the host a container sees; the operator can.
func (a Admission) Checkpoint(dir string) error {
	if strings.Contains(dir, "://") { // on a store
		return nil
	}
	if Within(dir, a.Work) {
		if a.Reserved(dir) {
			return fault.Definition(fmt.Errorf(
				"checkpoint folder %s is muster's own, want another: checkpoint in the work folder is the usual one",
				dir,
			))
		}
		return nil
	}
	if a.Root == plan.RootHost || a.mounted(dir, true) {
		return nil
	}
	return fault.NotPermitted(fmt.Errorf("checkpoint folder %s is not in the container: let the operator add it to "+
		"mounts in %s, or leave muster.checkpoint.dir out",
		dir, a.Policy.File))
}

// mounted tells whether the operator has a path of a container shown to it.
func (a Admission) mounted(path string, write bool) bool {
	return slices.ContainsFunc(
		a.Policy.Mounts, func(m policy.Mount) bool { return Within(path, m.To) && !(write && m.ReadOnly) },
	)
}

// inDefault tells whether a path is in the folder of the default filesystem.
func (a Admission) inDefault(path, top string) bool {
	return a.Default != "" && a.Default != "/" && Within(path, top)
}

// Visible refuses a path of the host that the process itself is told to use and does not have.
func (a Admission) Visible(path string, write bool) error {
	readable := !write && !InContainer(path) && a.hostRead()
	if a.Root == plan.RootHost || readable || Within(path, a.Work) || a.inDefault(path, a.Default) ||
		a.mounted(path, write) {
		return nil
	}
	return fault.NotPermitted(fmt.Errorf(
		"%s is not in the container: name a filesystem that holds it by --default-fs, or let the operator add it to "+
			"mounts in %s",
		path, a.Policy.File,
	))
}

// reach is the folder of the host beyond which an agent that is root does not follow a definition: the links in it may
// be of its process's own making. In the zero value the process's own rights are the bound.
type reach struct {
	name string // as paths name it
	real string // without links
}

func reachOf(name string) reach { return reach{filepath.Clean(name), Resolve(name)} }

// admit refuses a path that a definition may not name: one that its process could not reach by itself.
func (a Admission) admit(path string, write bool) (reach, error) {
	truth, work := Resolve(path), Resolve(a.Work)
	if Within(truth, work) {
		name := Admission{Work: work}.UnderWork(truth)
		switch {
		case Admission{Work: work}.Reserved(truth):
			return reach{}, fault.Definition(fmt.Errorf("%s is muster's own, want another place", truth))
		case !a.confined():
			return reach{}, nil
		}
		return reachOf(filepath.Join(a.Work, name)), nil
	}
	if !a.confined() {
		return reach{}, nil
	}
	if a.inDefault(truth, Resolve(a.Default)) {
		return reachOf(a.Default), nil
	}
	for _, m := range a.Policy.Mounts {
		if Within(truth, Resolve(m.Path)) && !(write && m.ReadOnly) {
			return reachOf(m.Path), nil
		}
	}
	if a.hostRead() && !write && !InContainer(truth) {
		return reachOf("/" + firstOf(truth)), nil
	}
	return reach{}, fault.NotPermitted(fmt.Errorf("%s: the job's container does not have it, and its process is "+
		"root: set muster.user, name a filesystem that holds it by --default-fs, or let the operator add it to "+
		"mounts in %s",
		truth, a.Policy.File))
}

// Open gives the store of a path of this host that the definition names, with the rights of the app's process. The path
// in the store may be another than was asked for.
func (a Admission) Open(path string, write bool) (store.Store, string, error) {
	top, err := a.admit(path, write)
	if err != nil {
		return nil, "", err
	}
	if top.name == "" {
		return a.User.store(file.New(file.Machine{})), path, nil
	}
	store, err := top.open(write)
	if err != nil {
		return nil, "", err
	}
	if !Within(path, top.name) { // a link led there
		path = Resolve(path)
	}
	return store, path, nil
}

func (r reach) open(write bool) (store.Store, error) {
	if _, err := os.Lstat(r.real); write && errors.Is(err, fs.ErrNotExist) { // a folder of the work folder
		above, err := os.OpenRoot(filepath.Dir(r.real))
		if err != nil {
			return nil, err
		}
		err = above.MkdirAll(filepath.Base(r.real), 0o755)
		if err = errors.Join(err, above.Close()); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(r.real)
	if err != nil {
		return nil, err
	}
	return file.New(file.Below{Root: root, Name: r.name, Real: r.real}), nil
}
