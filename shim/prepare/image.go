package prepare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/muster-agent/muster/packages/cachedir"
	"github.com/muster-agent/muster/packages/image"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox/container"
	"github.com/muster-agent/muster/shim/store"
)

// imageFault classifies the failure of an image. It may pass if the registry did not answer, a layer came broken, or
// this host had no room. An image that does not exist, is forbidden, or does not fit this host never comes.
func imageFault(err error) error {
	if fault.Is(err, registry.ClassNotPermitted) {
		return err
	}
	passing := slices.ContainsFunc([]error{image.ErrUnreachable, image.ErrDigest, syscall.ENOSPC, syscall.EDQUOT},
		func(cause error) bool {
			return errors.Is(err, cause)
		})
	return &fault.Error{Class: registry.ClassImage, Err: err, Passing: passing}
}

// pullImage prepares the layers of the plan's image and reads its configuration.
func (c *Container) pullImage(ctx context.Context, p plan.Plan) (*plan.ImageFacts, error) {
	options := image.Options{
		Cache: cachedir.Default(), Insecure: c.Policy.InsecureRegistries, Logger: c.Log, Progress: c.tellPull(),
		Layout: func(dir string) (image.Folder, error) { return c.Admission(p).ReadFolder(dir) },
	}
	if p.Root.Auth != "" {
		auth, err := c.imageAuth(ctx, p)
		if err != nil {
			return nil, imageFault(err)
		}
		options.Auth = auth
	}
	pulled, err := c.pullMakingRoom(ctx, p.Root.Image, options)
	if err != nil {
		return nil, imageFault(err)
	}
	root, err := imageRoot(pulled)
	if err != nil {
		return nil, imageFault(errors.Join(err, pulled.Close()))
	}
	c.image = rootImage{pulled, root}
	c.atEnd(func() {
		if err := pulled.Close(); err != nil {
			c.Log.Warn("image not released", "image", pulled.Ref, "err", err)
		}
	})
	c.Log.Info("image ready", "image", pulled.Ref, "digest", pulled.Digest, "layers", len(pulled.Layers))
	return imageFacts(pulled), nil
}

// pullMakingRoom pulls an image.
func (c *Container) pullMakingRoom(ctx context.Context, ref string, o image.Options) (*image.Image, error) {
	return c.makingRoom(ctx, ref, o.Cache, func() (*image.Image, error) { return image.Pull(ctx, ref, o) })
}

// makingRoom makes an image ready again after a full disk, if removing unused images could make room.
func (c *Container) makingRoom(
	ctx context.Context, ref, cache string, ready func() (*image.Image, error),
) (*image.Image, error) {
	got, err := ready()
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return got, err
	}
	gone, cleanErr := image.Clean(ctx, cache, time.Now())
	var bytes int64
	for _, l := range gone {
		bytes += l.Bytes
	}
	c.Log.Warn("no room for the image: layers that nobody uses are removed", "image", ref, "layers", len(gone), "mb",
		bytes/megabyte)
	if cleanErr != nil || len(gone) == 0 {
		return nil, errors.Join(err, cleanErr)
	}
	return ready()
}

// ownLayers copies the image's layers with the owners that the container gives them, where this host cannot mount them
// so.
func (c *Container) ownLayers(ctx context.Context, p plan.Plan) error {
	if c.ids == nil || p.Root.Kind != plan.RootImage || len(c.image.Layers) == 0 {
		return nil
	}
	_, table := c.confineIDs(nil, c.GPUs.Groups())
	why := c.showsOwners(filepath.Join(cachedir.Default(), "image"), table)
	if why == nil {
		return nil
	}
	c.Log.Info("layers are copied with the container's owners: they cannot be mounted so", "image", c.image.Ref,
		"layers", len(c.image.Layers), "why", why)
	owned, err := c.makingRoom(ctx, c.image.Ref, cachedir.Default(), func() (*image.Image, error) {
		return c.image.WithOwners(ctx, image.Owners{Key: fmt.Sprintf("%+v", *table), UID: table.UID, GID: table.GID})
	})
	if err != nil {
		return imageFault(err)
	}
	c.atEnd(func() {
		if err := owned.Close(); err != nil {
			c.Log.Warn("image not released", "image", owned.Ref, "err", err)
		}
	})
	root, err := imageRoot(owned)
	if err != nil {
		return imageFault(err)
	}
	root.Owned = true
	c.image.at = root
	return nil
}

// tellPull logs a pull's progress: each tenth, and which agent waits for which.
func (c *Container) tellPull() func(image.Progress) {
	var told atomic.Int64
	told.Store(-1)
	return func(p image.Progress) {
		if p.Total == 0 {
			return
		}
		tenth := 10 * p.Done / p.Total
		if told.Swap(tenth) == tenth {
			return
		}
		c.Log.Info("pulling", "image", p.Ref, "mb", p.Done/megabyte, "of_mb", p.Total/megabyte, "layers", p.Layers,
			"ready", p.Ready, "waiting", p.Waiting)
	}
}

// imageAuth reads the credentials that the definition names.
func (c *Container) imageAuth(ctx context.Context, p plan.Plan) (*image.Auth, error) {
	text, err := c.imageAuthText(ctx, p)
	if err != nil {
		return nil, err
	}
	auth, err := image.ParseAuth([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("muster.image.auth: %w", err)
	}
	return &auth, nil
}

// imageAuthText reads their text: file:PATH may be a file:URL, like PAI's authFile in the default filesystem.
func (c *Container) imageAuthText(ctx context.Context, p plan.Plan) (string, error) {
	const name = "muster.image.auth"
	ref := p.Root.Auth
	url, ok := strings.CutPrefix(ref, "file:")
	if far := ok && store.SchemeOf(url) != ""; !far || files.LocalPath(url) != "" {
		if far {
			ref = "file:" + files.LocalPath(url)
		}
		values, err := c.Secrets(p).Read(map[string]string{name: ref})
		return values[name], err
	}
	text, err := c.Stores.Read(ctx, p, url)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}

// imageFacts is the part of an image's configuration that a plan uses.
func imageFacts(i *image.Image) *plan.ImageFacts {
	facts := &plan.ImageFacts{
		Digest: i.Digest, Entrypoint: i.Config.Entrypoint, Cmd: i.Config.Cmd, Env: i.Config.Env,
		WorkDir: i.Config.WorkingDir, User: i.Config.User,
	}
	for _, path := range []string{"/bin/bash", "/usr/bin/bash"} {
		if f, err := i.Open(path); err == nil {
			facts.Bash = f.Close() == nil
			break
		}
	}
	return facts
}

// rootImage is the image that was pulled, if any.
type rootImage struct {
	*image.Image
	at container.Root
}

func (r rootImage) root() container.Root { return r.at }

func imageRoot(i *image.Image) (container.Root, error) {
	top, err := i.TopLevel()
	if err != nil {
		return container.Root{}, err
	}
	root := container.Root{Layers: i.Layers, UserXattr: i.UserXattr}
	for _, e := range top {
		root.Entries = append(root.Entries, container.Entry{
			Name: e.Name, Link: e.Target, Dir: e.Kind == image.Dir,
			Layers: e.Paths,
		})
	}
	return root, nil
}

// lookUpUser finds the user of the process; nil: the agent's own user. In an image a uid without an entry has group 0,
// as with Docker; on the host's root its group must be given.
func (c *Container) lookUpUser(p plan.Plan) (*plan.UserFacts, error) {
	if p.Process.User == "" && p.Root.Kind != plan.RootImage {
		return nil, nil
	}
	open, lone := files.OpenHost, (*int)(nil)
	if p.Root.Kind == plan.RootImage {
		open, lone = c.openInImage, new(int)
	}
	who, err := readAccounts(open)
	if err != nil {
		return nil, err
	}
	facts, err := who.find(cmp.Or(p.Process.User, "0"), lone)
	switch {
	case err != nil && p.Root.Kind == plan.RootImage && p.Process.User == c.image.Config.User:
		return nil, imageFault(fmt.Errorf("image %s: its own %w", c.image.Ref, err))
	case err != nil:
		return nil, fault.Definition(err)
	}
	return &facts, nil
}

// openInImage reads a file of the image; anything but a regular file counts as missing.
func (c *Container) openInImage(path string) (io.ReadCloser, error) {
	f, err := c.image.Open(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Log.Warn("file of the image not read", "path", path, "err", err)
		return nil, fs.ErrNotExist
	}
	return f, err
}
