package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

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
	// SameRights says that the process has all rights of an agent that is root: it is root of the same host on the same
	// files, as the operator has chosen, or its launcher's container holds both.
	SameRights bool
}

// bounded tells whether the agent may do more than the process: what it writes and reads for the process is held to the
// work folder and to what the operator names.
func (a Admission) bounded() bool { return os.Geteuid() == 0 && !a.SameRights }

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
// definition cannot choose what of the host a container sees, nor where an agent that is root puts checkpoints; the
// operator can.
func (a Admission) Checkpoint(dir string) error {
	if strings.Contains(dir, "://") { // on a store
		return nil
	}
	if err := a.checkpoint(dir); err != nil {
		return fmt.Errorf("muster.checkpoint.dir: checkpoint folder %w", err)
	}
	return nil
}

func (a Admission) checkpoint(dir string) error {
	if Within(dir, a.Work) && a.Reserved(dir) {
		return fault.Definition(fmt.Errorf(
			"%s is muster's own, want another: checkpoint in the work folder is the usual one", dir,
		))
	}
	if a.Root != plan.RootHost && !Within(dir, a.Work) {
		if err := a.seen(dir); err != nil {
			return err
		}
	}
	if !a.bounded() {
		return nil
	}
	_, err := a.placing(Resolve(dir))
	return err
}

// seen refuses a checkpoint folder that the container does not have at the host's path.
func (a Admission) seen(dir string) error {
	i := slices.IndexFunc(a.Policy.Mounts, func(m policy.Mount) bool { return Within(dir, m.To) && !m.ReadOnly })
	if i < 0 {
		return fault.NotPermitted(fmt.Errorf("%s is not in the container: let the operator %s, or leave "+
			"muster.checkpoint.dir out", dir, a.Policy.Admit(pathLine("mounts", dir, false))))
	}
	if m := a.Policy.Mounts[i]; m.Path != m.To {
		return fault.NotPermitted(fmt.Errorf("%s is in the container %s of the host, where muster does not look for "+
			"checkpoints: let the operator mount that at its own path in %s", dir, m.Path, a.Policy.File))
	}
	return nil
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
		"%s is not in the container: name a filesystem that holds it by --default-fs, or let the operator %s",
		path, a.Policy.Admit(pathLine("mounts", path, !write)),
	))
}

// reach is the folder of the host beyond which an agent that is root does not follow a definition: the links in it may
// be of its process's own making. In the zero value the process's own rights are the bound.
type reach struct {
	name string // as paths name it
	real string // without links
}

func reachOf(name string) reach { return reach{filepath.Clean(name), Resolve(name)} }

// admit refuses a path that a definition may not name: one that its process could not reach by itself, and, where the
// agent is root and writes, one beyond what the operator has it write to.
func (a Admission) admit(path string, write bool) (reach, error) {
	truth, work := Resolve(path), Resolve(a.Work)
	switch {
	case Within(truth, work):
		top, err := a.ofWork(truth, work)
		if err != nil || a.confined() {
			return top, err
		}
		return reach{}, nil
	case write && a.bounded():
		return a.placing(truth)
	case !a.confined():
		return reach{}, nil
	}
	if top, ok := a.root(truth, write); ok {
		return top, nil
	}
	if a.hostRead() && !InContainer(truth) {
		return reachOf("/" + firstOf(truth)), nil
	}
	return reach{}, fault.NotPermitted(fmt.Errorf("%s: the job's container does not have it, and its process is "+
		"root: set muster.user, name a filesystem that holds it by --default-fs, or let the operator %s",
		truth, a.Policy.Admit(pathLine("roots", truth, true))))
}

// ofWork is the folder in the work folder that a path goes through.
func (a Admission) ofWork(truth, work string) (reach, error) {
	in := Admission{Work: work}
	if in.Reserved(truth) {
		return reach{}, fault.Definition(fmt.Errorf("%s is muster's own, want another place", truth))
	}
	return reachOf(filepath.Join(a.Work, in.UnderWork(truth))), nil
}

// root is the folder that the operator has named and that a path without links is in.
func (a Admission) root(truth string, write bool) (reach, bool) {
	if a.inDefault(truth, Resolve(a.Default)) {
		return reachOf(a.Default), true
	}
	for _, m := range a.Policy.Mounts {
		if Within(truth, Resolve(m.Path)) && !(write && m.ReadOnly) {
			return reachOf(m.Path), true
		}
	}
	for _, r := range a.Policy.Roots {
		if Within(truth, Resolve(r.Path)) && !(write && r.ReadOnly) {
			return reachOf(r.Path), true
		}
	}
	return reach{}, false
}

// placing is where an agent that is root may put files for a definition: in the work folder, in the default filesystem,
// and where the operator says. A process that is no more than a user cannot send such an agent elsewhere.
func (a Admission) placing(truth string) (reach, error) {
	if work := Resolve(a.Work); Within(truth, work) {
		return a.ofWork(truth, work)
	}
	if top, ok := a.root(truth, true); ok {
		return top, nil
	}
	if field, ok := a.readOnly(truth); ok {
		return reach{}, fault.NotPermitted(fmt.Errorf("%s: %s has it in %s as read_only: let the operator take that "+
			"out, or name a path below the work folder", truth, a.Policy.File, field))
	}
	return reach{}, fault.NotPermitted(fmt.Errorf("%s: an agent that is root writes for a definition only below its "+
		"work folder: name a path there, name a filesystem that holds it by --default-fs, or let the "+
		"operator %s", truth, a.Policy.Admit(pathLine("roots", truth, false))))
}

// readOnly is the field of the policy that names a path, to be read alone.
func (a Admission) readOnly(truth string) (field string, found bool) {
	for i, m := range a.Policy.Mounts {
		if m.ReadOnly && Within(truth, Resolve(m.Path)) {
			return fmt.Sprintf("mounts[%d]", i), true
		}
	}
	for i, r := range a.Policy.Roots {
		if r.ReadOnly && Within(truth, Resolve(r.Path)) {
			return fmt.Sprintf("roots[%d]", i), true
		}
	}
	return "", false
}

// Write refuses a path of this host that the agent may not write to for the definition.
func (a Admission) Write(path string) error {
	_, err := a.admit(path, true)
	return err
}

// pathLine is the line of a policy that admits a path, in mounts or roots.
func pathLine(field, path string, readOnly bool) string {
	if readOnly {
		return fmt.Sprintf(`%q: [{"path": %q, "read_only": true}]`, field, path)
	}
	return fmt.Sprintf(`%q: [{"path": %q}]`, field, path)
}

// Open gives the store of a path of this host that the definition names, with the rights of the app's process. The path
// in the store may be another than was asked for.
func (a Admission) Open(path string, write bool) (store.Store, string, error) {
	top, err := a.admit(path, write)
	if err != nil {
		return nil, "", err
	}
	if top.name == "" {
		return a.User.store(a.User.machine()), path, nil
	}
	store, err := top.open(write)
	if err != nil {
		return nil, "", err
	}
	if !Within(path, top.name) { // a link led there
		path = Resolve(path)
	}
	return a.User.store(store), path, nil
}

// Folder opens a folder of this host that the definition names for its process to write to, with the rights of that
// process.
func (a Admission) Folder(path string) (UserFolder, error) {
	if !a.bounded() {
		root, err := os.OpenRoot(path)
		if err != nil {
			return UserFolder{}, err
		}
		return a.User.In(root), nil
	}
	truth := Resolve(path)
	top, err := a.placing(truth)
	if err != nil {
		return UserFolder{}, err
	}
	return top.folder(truth, path, a.User)
}

// Read reads a small file of this host that the definition names, with the rights of the app's process. Where that is
// root's right, the file lies below the work folder or where the operator says.
func (a Admission) Read(path string, most int64) (text string, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	truth := Resolve(path)
	top, listed := a.secretFile(truth)
	if !a.bounded() || a.User.limited() && !listed {
		err = a.User.Do(func() (err error) { text, err = a.User.read(path, most); return err })
		if a.User.limited() && errors.Is(err, fs.ErrPermission) {
			err = fault.NotPermitted(fmt.Errorf("%w: let it read the file, let the operator %s, or name "+
				"a variable of the agent, env:MUSTER_SECRET_…", err,
				a.Policy.Admit(fmt.Sprintf(`"secret_files": [%q]`, truth))))
		}
		return text, err
	}
	if !listed {
		if top, err = a.reading(truth, fmt.Sprintf(`"secret_files": [%q]`, truth)); err != nil {
			return "", err
		}
	}
	in, err := top.folder(filepath.Dir(truth), filepath.Dir(path), User{})
	if err != nil {
		return "", err
	}
	text, err = Folder{Root: in.root}.Read(filepath.Base(truth), most)
	for _, why := range []error{unix.ENOENT, ErrNotPlain} {
		if errors.Is(err, why) { // it names the folder by its descriptor
			err = fmt.Errorf("%s: %w", path, why)
			break
		}
	}
	return text, errors.Join(err, in.Close())
}

// ReadFolder opens a folder of this host that the definition names for the agent to read files in, with the rights of
// the app's process. Where that is root's right, the folder lies below the work folder or where the operator says.
func (a Admission) ReadFolder(path string) (UserFolder, error) {
	if a.User.limited() {
		in, err := a.User.folder(path)
		if errors.Is(err, fs.ErrPermission) {
			err = fault.NotPermitted(fmt.Errorf("%w: open it to everybody (chmod -R o+rX, and o+x above it)", err))
		}
		return in, err
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return UserFolder{}, err
	}
	if !a.bounded() {
		root, err := os.OpenRoot(path)
		return UserFolder{root, path, a.User}, err
	}
	truth := Resolve(path)
	top, err := a.reading(truth, pathLine("roots", truth, true))
	if err != nil {
		return UserFolder{}, err
	}
	return top.folder(truth, path, a.User)
}

// secretFile tells whether the operator lets definitions name a file as a secret whoever may read it, and its folder.
func (a Admission) secretFile(truth string) (reach, bool) {
	return reachOf(filepath.Dir(truth)), slices.ContainsFunc(a.Policy.SecretFiles, func(entry string) bool {
		dir, all := strings.CutSuffix(entry, "/*")
		dir = Resolve(dir)
		return truth == dir && !all || all && truth != dir && Within(truth, dir)
	})
}

// reading is where an agent that is root may read a file that a definition names, with root's rights. line is what
// would admit it elsewhere.
func (a Admission) reading(truth, line string) (reach, error) {
	if top, ok := a.root(truth, false); ok {
		return top, nil
	}
	if work := Resolve(a.Work); Within(truth, work) {
		return a.ofWork(truth, work)
	}
	return reach{}, fault.NotPermitted(fmt.Errorf("%s: an agent that is root reads for a definition only below its "+
		"work folder: set muster.user to a user who may read it, or let the operator %s", truth,
		a.Policy.Admit(line)))
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
