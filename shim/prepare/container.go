package prepare

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/gpu"
	"github.com/muster-agent/muster/shim/gpu/grant"
	"github.com/muster-agent/muster/shim/hadoop"
	"github.com/muster-agent/muster/shim/openapp"
	"github.com/muster-agent/muster/shim/ownfolder"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/ports"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/sandbox/container"
	"github.com/muster-agent/muster/shim/sandbox/subids"
	"github.com/muster-agent/muster/shim/secret"
	"github.com/muster-agent/muster/shim/workdir"
)

// megabyte is MiB, as in YARN.
const megabyte = 1 << 20

// Config is what a Container is made from.
type Config struct {
	Log             *slog.Logger
	App             *openapp.App
	AppID, Run      string
	Registry        string // which the app is in
	WorkDir, LogDir string // of the run
	Host            string // address that peers reach the instance at
	// Socket is where the agent of an instance listens on this host.
	Socket func(registry.Instance) string
	Engine sandbox.Choice
	Policy policy.Policy
	// Submitter is the user whom the launcher names as the job's, where no definition can say another; "": none.
	Submitter string
	// RequireLimits refuses to run where a limit is not enforced.
	RequireLimits bool
	ImageEnv      map[string]string // what a process in an image inherits
	DefaultFS     hadoop.DefaultFS  // where paths without a scheme are
	Ports         *ports.Instance
	GPUs          *grant.Grant
	Stores        stores
}

// stores gives access to the data that a definition names.
type stores interface {
	// Folders are the folders of this host that a container needs for the plan's data.
	Folders(plan.Plan) []string
	// Read reads a small file of a store.
	Read(ctx context.Context, p plan.Plan, url string) (string, error)
}

// Container is the container of one instance during its preparation. Its methods are called one after the other; User,
// Owner and Close from any goroutine.
type Container struct {
	Config
	priority priority

	image  rootImage
	cgroup string // its name; "" until it is taken
	// secrets are the process's, as files; nil: it gets none.
	secrets *secret.Folder

	showsOwners func(cache string, ids *subids.Map) error // nil: layers can be mounted with a container's owners

	mu      sync.Mutex
	user    *plan.UserFacts // nil: the agent's own, or root with ids of its own
	ids     *ids            // nil: those of the agent
	closers []func()
}

// New makes an empty Container.
func New(c Config) *Container {
	return &Container{Config: c, priority: ownPriority(), showsOwners: container.TryOwners}
}

// Close releases everything, in reverse order.
func (c *Container) Close() {
	c.mu.Lock()
	all := c.closers
	c.closers = nil
	c.mu.Unlock()
	for _, undo := range slices.Backward(all) {
		undo()
	}
}

func (c *Container) atEnd(undo func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closers = append(c.closers, undo)
}

// User is the user of the process; nil: the agent's own user, or not known yet.
func (c *Container) User() *plan.UserFacts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.user
}

// Owner is the process's user as the host's kernel knows it, by whose rights the agent handles files for the process;
// nil: the agent's own user, or not known yet. User is what the process sees of itself.
func (c *Container) Owner() *plan.UserFacts {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ids == nil {
		return c.user
	}
	owner := c.ids.owner(c.user)
	if c.user == nil || c.user.UID == 0 {
		owner.Commands = c.ids.table(c.user, nil).HasUser
	}
	return owner
}

func (c *Container) setUser(u *plan.UserFacts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.user = u
}

// Admission is what the definition may name on this host.
func (c *Container) Admission(p plan.Plan) files.Admission {
	return files.Admission{
		Work: c.WorkDir, Default: c.DefaultFS.Local(), Policy: c.Policy, Root: p.Root.Kind, User: files.As(c.Owner()),
		SameRights: c.sameRights(p),
	}
}

// Secrets is where the values come from that the plan names by reference.
func (c *Container) Secrets(p plan.Plan) secret.Source {
	return secret.Source{Policy: c.Policy, Job: p.Process.JobSecrets, File: func(path string) (string, error) {
		return c.Admission(p).Read(path, secret.Most)
	}}
}

// Complete makes the plan in steps: each part that the plan asks for (image, user, ports, devices) is got and planned
// with again. previous are the ports that the index had before.
func (c *Container) Complete(ctx context.Context, request plan.Request, previous map[string]int) (plan.Plan, error) {
	p, err := c.build(request)
	if err != nil {
		return p, err
	}
	if err := c.takePorts(p, previous); err != nil {
		return p, err
	}
	request.Allocation.Ports = c.Ports.Numbers()
	if p.Root.Kind == plan.RootImage {
		request.Inherited = c.ImageEnv
	}
	if p, err = c.withImage(ctx, &request, p); err != nil {
		return p, err
	}
	c.atEnd(c.GPUs.Close)
	if err := c.GPUs.Take(ctx, p, gpu.FindHelper()); err != nil {
		return p, err
	}
	if err := c.ownLayers(ctx, p); err != nil {
		return p, err
	}
	c.GPUs.Tell(&request, p.Root.Kind != plan.RootHost)
	return c.build(request)
}

// Plan plans for an instance that will not start: without its ports and devices.
func (c *Container) Plan(ctx context.Context, request plan.Request) (plan.Plan, error) {
	p, err := c.build(request)
	if err != nil {
		return p, err
	}
	return c.withImage(ctx, &request, p)
}

// withImage pulls the plan's image, finds the process's user, and plans again with what the image says.
func (c *Container) withImage(ctx context.Context, request *plan.Request, p plan.Plan) (_ plan.Plan, err error) {
	if err := c.takeIDs(p); err != nil { // with whose rights an image's login and layout are read
		return p, err
	}
	if p.Root.Kind == plan.RootImage {
		if request.Image, err = c.pullImage(ctx, p); err != nil {
			return p, err
		}
		if p, err = c.build(*request); err != nil {
			return p, err
		}
	}
	if request.User, err = c.lookUpUser(p); err != nil {
		return p, err
	}
	c.setUser(request.User)
	if err := c.nameIDs(p); err != nil {
		return p, err
	}
	if err := c.mayBe(p); err != nil {
		return p, fault.NotPermitted(err)
	}
	return p, nil
}

func (c *Container) build(request plan.Request) (plan.Plan, error) {
	p, problems := plan.Build(c.App.App, request)
	bad := problems.Errors()
	switch {
	case len(bad) == 0:
		return p, nil
	case slices.ContainsFunc(bad, func(p appdef.Problem) bool { return p.Forbidden }):
		return p, fault.NotPermitted(bad)
	}
	return p, fault.Definition(bad)
}

// takePorts takes the ports that the launcher has granted first, since no other is reserved for this agent; then those
// that the index had before; then any.
func (c *Container) takePorts(p plan.Plan, previous map[string]int) error {
	if err := c.Ports.Take(p, previous); err != nil {
		return err
	}
	c.atEnd(c.Ports.Close)
	return nil
}

// TakeFolder makes the instance's folder and takes it until Close.
func (c *Container) TakeFolder(ctx context.Context, in registry.Instance) error {
	lock, err := workdir.Take(ctx, c.WorkDir, in)
	if err != nil {
		return err
	}
	c.atEnd(func() {
		if err := lock.Release(); err != nil {
			c.Log.Warn("instance's folder not released", "err", err)
		}
	})
	return nil
}

// LayOut stages the plan's items into the instance's folder, and calls bring for those from stores. Items of an earlier
// agent are replaced.
func (c *Container) LayOut(
	ctx context.Context, p plan.Plan, in registry.Instance, bring func(work files.Folder) error,
) (err error) {
	if err := c.unpack(); err != nil {
		return err
	}
	c.atEnd(func() {
		if err := c.disarm(p, in); err != nil {
			c.Log.Warn("set-user-ID files and devices of the process not removed", "err", err)
		}
	})
	work, err := files.Below(c.WorkDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	if err := c.room(p.Limits.StorageGB); err != nil {
		return err
	}
	folder, err := c.giveFolder(p, work)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	for _, dir := range []string{"app/install", "app/run", "app/log", "app/tmp", "app/conf"} {
		made, err := folder.Make(dir)
		if err != nil {
			return err
		}
		if err := made.Close(); err != nil {
			return err
		}
	}
	for _, item := range p.Stage {
		if item.FromStore() {
			continue
		}
		if err := stageItem(ctx, work, folder, item); err != nil {
			return fmt.Errorf("stage %s: %w", item.Name, err)
		}
	}
	if err := layProgram(ctx, work, folder, p); err != nil {
		return err
	}
	c.App.Close() // all of it is laid out
	// Data in the work folder is the process's to reach.
	if err := errors.Join(c.letPass(p, c.WorkDir), c.reach(p)); err != nil {
		return err
	}
	if err := bring(work); err != nil {
		return err
	}
	return c.giveFolders(p, in, work)
}

// room checks that the file system of the work folder has as much free as an instance wants.
func (c *Container) room(gb int) error {
	var disk unix.Statfs_t
	if gb == 0 {
		return nil
	}
	if err := unix.Statfs(c.WorkDir, &disk); err != nil {
		return fmt.Errorf("muster.storage: work folder %s: %w", c.WorkDir, err)
	}
	const giga = 1_000_000_000
	free := disk.Bavail * uint64(disk.Bsize)
	if free >= uint64(gb)*giga {
		return nil
	}
	return fault.Data(fmt.Errorf("muster.storage: work folder %s has %d GB free, the instance wants %d: free some, or "+
		"give --work-dir a folder of another file system", c.WorkDir, free/giga, gb))
}

// giveFolder makes the process the owner of its instance's folder. From then on the agent does in it what the process
// may.
func (c *Container) giveFolder(p plan.Plan, work files.Folder) (files.UserFolder, error) {
	user := files.As(c.Owner())
	folder, err := work.Make(p.Process.Folder)
	if err != nil {
		return files.UserFolder{}, err
	}
	if err := errors.Join(user.OwnAll(folder), folder.Chmod(".", 0o700)); err != nil {
		return files.UserFolder{}, errors.Join(err, folder.Close())
	}
	return user.In(folder), nil
}

// unpack unpacks the package beside the instances' folders.
func (c *Container) unpack() error {
	err := packages.Unpack(c.App.Package, filepath.Join(c.WorkDir, "package"), c.Run)
	switch {
	case errors.Is(err, packages.ErrForeign):
		return fault.Held(fmt.Errorf("%w; give --work-dir a folder of its own", err))
	case errors.Is(err, packages.ErrRefused): // a link that leads outside
		return fault.Definition(err)
	}
	return err
}

// giveCheckpoints makes a checkpoint folder in the work folder the process's. In a folder of processes it is made with
// the process's rights: what is there may be a folder of others that a process has moved in.
func (c *Container) giveCheckpoints(p plan.Plan, work files.Folder) error {
	dir := p.Checkpoint.Dir
	if !files.Within(dir, c.WorkDir) || dir == p.Process.Folder {
		return nil
	}
	user, top := files.As(c.Owner()), filepath.Join(c.WorkDir, c.Admission(p).UnderWork(dir))
	if dir == top || ownfolder.Own(top, filepath.Dir(dir)) == nil {
		checkpoints, err := work.Make(dir)
		if err != nil {
			return err
		}
		return errors.Join(user.OwnAll(checkpoints), checkpoints.Close())
	}
	root, err := work.Make(top)
	if err != nil {
		return err
	}
	above := user.In(root)
	defer above.Close()
	name, err := above.Rel(dir)
	if err != nil {
		return err
	}
	checkpoints, err := above.Make(name)
	if err != nil {
		return err
	}
	return checkpoints.Close()
}

// giveFolders makes the process the owner of what else it may write, a checkpoint folder in the work folder and its
// logs, and lets it read the package.
func (c *Container) giveFolders(p plan.Plan, in registry.Instance, work files.Folder) error {
	user := files.As(c.Owner())
	if err := c.giveCheckpoints(p, work); err != nil {
		return err
	}
	pack, err := work.Make(filepath.Join(c.WorkDir, "package"))
	if err == nil {
		err = errors.Join(user.LetRead(pack), pack.Close())
	}
	if err != nil {
		return err
	}
	top, err := files.Below(c.LogDir)
	if err != nil {
		return err
	}
	logs, err := top.Make(filepath.Join(c.LogDir, in.String()))
	if err == nil {
		err = errors.Join(user.OwnAll(logs), logs.Close())
	}
	return errors.Join(err, top.Close(), c.letPass(p, c.LogDir), c.disarm(p, in))
}

// letPass lets the process, and the root inside that makes its container, pass through a folder of the agent's.
func (c *Container) letPass(p plan.Plan, dir string) error {
	err := files.As(c.Owner()).LetPass(dir)
	if c.ids != nil && p.Root.Kind != plan.RootHost {
		err = errors.Join(err, files.As(ids{block: c.ids.block}.owner(nil)).LetPass(dir))
	}
	return err
}

// disarm takes from what the processes have left in the instance's folders what would give others the rights of root.
func (c *Container) disarm(p plan.Plan, in registry.Instance) error {
	var all error
	for _, dir := range []string{p.Process.Folder, filepath.Join(c.LogDir, in.String())} {
		folder, err := files.Below(dir)
		if err == nil {
			err = errors.Join(files.Disarm(folder.Root, nil), folder.Close())
		}
		all = errors.Join(all, err)
	}
	if strings.Contains(p.Checkpoint.Dir, "://") {
		return all
	}
	admission := c.Admission(p)
	admission.User = files.User{} // who may remove what the process's users have made; others' files stay
	saved, err := admission.Folder(p.Checkpoint.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return all
	}
	if err == nil {
		err = errors.Join(saved.Disarm(c.owns), saved.Close())
	}
	return errors.Join(all, err)
}

// StartGuard starts the guard that will hold the instance's process.
func (c *Container) StartGuard(ctx context.Context, p plan.Plan, in registry.Instance) (*sandbox.Guard, error) {
	confine, err := c.confinement(p, in)
	if err != nil {
		return nil, err
	}
	outlast()
	caps := sandbox.DefaultCaps | sandbox.Caps(c.Policy.Capabilities.Added)
	guard, err := c.Engine.Engine.StartGuard(ctx, sandbox.Options{
		LogDir: filepath.Join(c.LogDir, in.String()), Logger: c.Log, Confine: confine,
		OOMScoreAdj: c.priority.oomScore, Nice: c.priority.nice,
		Caps: &caps,
	})
	if err != nil {
		return nil, fault.NotPermitted(fmt.Errorf("engine %s: %w", c.Engine.Engine.Name(), err))
	}
	return guard, nil
}
