package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/runc/libcontainer"
	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/cgroup"
)

// Container is a container that Run has made.
type Container struct {
	inner     *libcontainer.Container
	process   *libcontainer.Process
	dir       string
	memoryDir string // dir where the host has no filesystem in memory
	cgroups   []string
	pid       int
}

// errNoInit says that main does not begin with Init.
var errNoInit = errors.New("main must begin with sandbox.Init")

// Run makes the container and starts its first process, PID 1: the program in the last of files, with files
// as its descriptors from 3 on. When it returns without an error, the program has been executed. What an earlier
// container has left in s.Dir must have been cleared. When Run fails, nothing is left, s.Cgroup included.
func Run(ctx context.Context, s Spec, files ...*os.File) (*Container, error) {
	c, err := run(ctx, s, files)
	if err != nil {
		return nil, fmt.Errorf("make container: %w", explain(err))
	}
	return c, nil
}

func run(ctx context.Context, s Spec, files []*os.File) (c *Container, err error) {
	if !initialised {
		return nil, errNoInit
	}
	dir, err := makeDir(s.Dir)
	if err != nil {
		return nil, err // nothing was made
	}
	s.Dir = dir
	defer func() {
		if err != nil {
			err = errors.Join(err, Clear(context.WithoutCancel(ctx), dir))
		}
	}()
	if s.memoryDir, err = makeMemoryDir(s.Dir); err != nil {
		return nil, err
	}
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	inner, err := libcontainer.Create(filepath.Join(s.memoryDir, stateName), s.id(), config)
	if err != nil {
		return nil, err
	}
	cgroups := cgroupsOf(inner) // libcontainer forgets them when a start fails
	if err := record(s.Dir, cgroups); err != nil {
		return nil, errors.Join(err, destroy(inner, cgroups))
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	process := &libcontainer.Process{
		Init:  true,
		Args:  []string{"/proc/self/fd/" + strconv.Itoa(2+len(files))},
		Env:   []string{}, // neither the agent's nor the image's
		Cwd:   "/",
		Stdin: null, Stdout: null, Stderr: null,
		ExtraFiles: files,
	}
	if err := s.stage.around(func() error { return inner.Run(process) }); err != nil {
		return nil, errors.Join(err, destroy(inner, cgroups))
	}
	if config.RootlessEUID {
		s.openWork()
	}
	pid, err := process.Pid()
	return &Container{inner: inner, process: process, dir: s.Dir, memoryDir: s.memoryDir, cgroups: cgroups, pid: pid},
		err
}

// stateName is where libcontainer keeps what it must know of the container.
const stateName = "state"

// recordName holds the paths of the cgroup as JSON, each with its number, before the container joins it: a maker that
// is killed meanwhile leaves no other trace of them.
const recordName = "cgroups"

func record(dir string, paths []string) error {
	text, err := json.Marshal(cgroup.Inodes(paths))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, recordName), text, 0o600)
}

// makeDir makes the container's folder, closed to other users: the writable layers of a root may hold device nodes and
// set-user-ID programs that its root made.
func makeDir(dir string) (string, error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	at, err := filepath.EvalSymlinks(dir)
	if err == nil {
		err = os.WriteFile(filepath.Join(at, markName), nil, 0o600)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(dir))
	}
	return at, nil
}

// markName is the file that marks a folder as a container's: Clear removes no other.
const markName = ".container"

// id names the container in libcontainer's alphabet, which has + and not ~. It also names its session keyring, so
// two containers of a host never share one.
func (s Spec) id() string {
	return strings.NewReplacer("~", "+t").Replace(s.App) + "+-" + strings.NewReplacer("~", "+t").Replace(s.Instance)
}

// PID of the first process, in the caller's pid namespace.
func (c *Container) PID() int { return c.pid }

// Dir is the container's folder.
func (c *Container) Dir() string { return c.dir }

// Wait for the end of the first process; all others have ended with it.
func (c *Container) Wait() (*os.ProcessState, error) {
	state, err := c.process.Wait()
	if state != nil {
		return state, nil // how it ended is in the state
	}
	return nil, err
}

// Kill the first process, and with it all others.
func (c *Container) Kill() error { return c.process.Signal(os.Kill) }

// Cgroups are the folders of the container's cgroup, one for each hierarchy.
func (c *Container) Cgroups() []string { return slices.Clone(c.cgroups) }

func cgroupsOf(c *libcontainer.Container) []string {
	state, err := c.State()
	if err != nil {
		return nil
	}
	// A container without a cgroup of its own lists folders that were never made.
	return slices.DeleteFunc(slices.Sorted(maps.Values(state.CgroupPaths)), func(path string) bool {
		return filepath.Base(filepath.Dir(filepath.Dir(path))) != "muster"
	})
}

// Remove removes the cgroup and the folders of a container whose first process has ended.
func (c *Container) Remove() error {
	err := destroy(c.inner, c.cgroups)
	if err == nil {
		err = errors.Join(removeTree(c.memoryDir), removeTree(c.dir))
	}
	if err != nil {
		return fmt.Errorf("remove container: %w", err)
	}
	return nil
}

// destroy removes the cgroup in all hierarchies that libcontainer has joined, and the empty folders above it:
// muster/<app>, muster.
func destroy(c *libcontainer.Container, cgroups []string) error {
	if err := c.Destroy(); err != nil {
		return err
	}
	for _, path := range cgroups {
		if app := filepath.Dir(path); unix.Rmdir(app) == nil {
			_ = unix.Rmdir(filepath.Dir(app)) // other apps may be in it
		}
	}
	return nil
}
