package plan

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// What the process finds at /, as in Root.Kind.
const (
	RootHost     = "host"      // the host's own, as the agent sees it
	RootReadOnly = "read-only" // the host's, read-only, with a private /tmp
	RootOverlay  = "overlay"   // the host's, with private writes
	RootImage    = "image"     // an image's, with private writes
)

// SocketInside is where a process in a container reaches its agent. The socket's own folder is closed to the ids by
// which a container's mounts are made, and need not be in the container at all.
const SocketInside = "/run/muster/agent.sock"

// engineContainer is the engine that gives a process a root of its own.
const engineContainer = "container"

// imagePath is what Docker sets where an image has no PATH.
const imagePath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// root decides what the process finds at /. An image needs the container engine.
func (b *builder) root() Root {
	limits := b.component.Limits
	switch {
	// "": nobody asks for a host
	case limits.Image != "" && b.req.Engine.Name != "" && b.req.Engine.Name != engineContainer:
		p := b.key("muster.image")().Problem("image "+appdef.Quote(limits.Image)+" with engine "+b.req.Engine.Name,
			"engine container", "this one was taken because: "+b.req.Engine.Why)
		p.Forbidden = true
		b.problems = append(b.problems, p)
		return Root{Kind: RootImage, Image: limits.Image}
	case limits.Image != "":
		r := Root{
			Kind: RootImage, Image: b.text("muster.image", limits.Image),
			Auth: b.text("muster.image.auth", limits.ImageAuth),
		}
		if b.req.Image != nil {
			r.Digest = b.req.Image.Digest
		}
		return r
	case b.req.Engine.Name != engineContainer:
		if limits.Root == appdef.RootOverlay && b.req.Engine.Name != "" {
			b.warn(b.key("muster.root"), limits.Root+" with engine "+b.req.Engine.Name, "engine container",
				"the process sees the host's root, and its writes stay")
		}
		return Root{Kind: RootHost}
	case limits.Root == appdef.RootOverlay:
		return Root{Kind: RootOverlay}
	}
	return Root{Kind: RootReadOnly}
}

// user is the user of the process: that of the definition, else of the image.
func (b *builder) user() string {
	if user := b.component.Limits.User; user != "" {
		return b.text("muster.user", user)
	}
	if b.req.Image != nil {
		return b.req.Image.User
	}
	return ""
}

// rootUser warns about a process that is root on the host's own files: of an agent that is the host's root, and with
// the agent's ids.
func (b *builder) rootUser(p Plan) {
	id, _, _ := strings.Cut(p.Process.User, ":")
	uid, err := strconv.Atoi(id)
	root := id == "" || id == "root" || err == nil && uid == 0
	if b.req.User != nil {
		root = b.req.User.UID == 0
	}
	if root && b.req.HostRoot && b.req.Engine.IDs == "" && p.Root.Kind != RootImage {
		b.warn(b.key("muster.user"), "root on the host's root", "muster.user",
			"the process may do to this host what its engine does not forbid; give it a user of its own")
	}
}

// inherited is the environment below the process's variables: the agent's variables that pass the filter, then the
// image's, then those of its user.
func (b *builder) inherited(r Root) map[string]string {
	env := maps.Clone(b.req.Inherited)
	if env == nil {
		env = map[string]string{}
	}
	if b.app.Settings.InheritEnv == appdef.InheritHBox {
		maps.DeleteFunc(env, func(name, _ string) bool { return !hboxInherits(name) })
	}
	if r.Kind != RootHost {
		delete(env, "TMPDIR") // a folder of the host; the container has a /tmp of its own
	}
	if r.Kind == RootImage && env["PATH"] == "" {
		env["PATH"] = imagePath
	}
	if b.req.Image != nil {
		for _, e := range b.req.Image.Env {
			if name, value, ok := strings.Cut(e, "="); ok && name != "" && !strings.HasPrefix(name, "MUSTER_") {
				env[name] = value
			}
		}
	}
	maps.Copy(env, b.req.Given)
	if len(b.req.LibraryDirs) > 0 {
		dirs := strings.Join(b.req.LibraryDirs, ":")
		env["LD_LIBRARY_PATH"] = strings.TrimPrefix(env["LD_LIBRARY_PATH"]+":"+dirs, ":")
	}
	if u := b.req.User; u != nil {
		env["HOME"] = u.Home
		if u.Name != "" {
			env["USER"], env["LOGNAME"] = u.Name, u.Name
		}
	}
	return env
}

// inImage combines a command with the image's: its entrypoint, and its own command if the definition has none. A task
// of PAI runs its command alone: PAI clears the entrypoint. nil: the image is not known yet.
func (b *builder) inImage(command []string) []string {
	image := b.req.Image
	if image == nil {
		return command
	}
	if b.app.Settings.PAI.Version != "" && len(command) > 0 {
		b.verbatim = 0
		return command
	}
	b.verbatim = len(image.Entrypoint)
	if len(command) == 0 {
		command = image.Cmd
		b.verbatim += len(command)
	}
	argv := slices.Concat(image.Entrypoint, command)
	if len(argv) == 0 {
		b.problem(b.key("muster.image"), "image "+appdef.Quote(b.component.Limits.Image)+", which has neither "+
			"entrypoint nor command",
			"muster.command", "say what to run in it")
	}
	return argv
}

// cwd is the image's working directory if it has one, else the instance's folder. Scripts always start in the
// instance's folder, and so do processes whose inputs and outputs lie there.
func (b *builder) cwd(s *Script) string {
	if image := b.req.Image; s == nil && !b.staysAtHome() && image != nil && image.WorkDir != "" &&
		image.WorkDir != "/" {
		return image.WorkDir
	}
	return b.req.root()
}
