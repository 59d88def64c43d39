package container

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"
)

// An image's root is not one overlay but one for each of its top-level folders, because libcontainer mounts nothing at
// the root itself and we mount nothing on the host. Links and files at the top are made again in the skeleton.

// overlays makes an image's root.
type overlays struct {
	spec   Spec
	root   string // the skeleton
	who    identity
	links  map[string]string // folder of a layer → its short name
	mounts []*configs.Mount
	staged []stagedOverlay // instead of mounts, in the order of their folders
}

func (s *Spec) imageRoot(root string, who identity) ([]*configs.Mount, error) {
	o := overlays{spec: *s, root: root, who: who, links: map[string]string{}}
	for _, name := range []string{"l", "upper"} {
		if err := os.Mkdir(filepath.Join(s.Dir, name), 0o700); err != nil {
			return nil, err
		}
	}
	for _, e := range s.Root.Entries {
		if slices.Contains(ownNames, e.Name) {
			continue
		}
		if err := o.add(e); err != nil {
			return nil, fmt.Errorf("image root: %s: %w", e.Name, err)
		}
	}
	if len(o.staged) > 0 {
		s.stage = &stage{root: root, overlays: o.staged, ids: who.ids}
		if !s.Root.Owned {
			s.stage.layers = o.links
		}
	}
	return o.mounts, nil
}

func (o *overlays) add(e Entry) error {
	if e.Name == "" || e.Name == "." || e.Name == ".." || strings.ContainsAny(e.Name, "/\x00") {
		return errors.New("no name of a file")
	}
	at := filepath.Join(o.root, e.Name)
	switch {
	case e.Link != "":
		return errors.Join(os.Symlink(e.Link, at), o.who.give(at, 0, 0))
	case len(e.Layers) == 0:
		return errors.New("no layer has it")
	case e.Dir:
		return o.folder(e, at)
	default:
		return errors.Join(copyFile(e.Layers[len(e.Layers)-1], at), o.who.give(at, 0, 0))
	}
}

func (o *overlays) folder(e Entry, at string) error {
	for _, layer := range e.Layers {
		if within(o.spec.Dir, layer) {
			return o.shown(e, at)
		}
	}
	upper, work, err := o.writable(e)
	if err != nil {
		return err
	}
	if err := os.Mkdir(at, 0o755); err != nil {
		return err
	}
	if e.Name == "etc" {
		in := filepath.Join(o.spec.Dir, "upper", strconv.Itoa(len(o.mounts)), "u")
		if err := o.spec.etc(in, o.who); err != nil {
			return err
		}
	}
	var lower []string
	for _, layer := range slices.Backward(e.Layers) {
		short, err := o.short(layer)
		if err != nil {
			return err
		}
		lower = append(lower, short)
	}
	// What the container writes is removed with it, so it need not reach the disk (volatile).
	data := "lowerdir=" + strings.Join(lower, ":") + ",upperdir=" + upper + ",workdir=" + work + ",volatile"
	if o.who.rootless || o.spec.Root.UserXattr {
		data += ",userxattr"
	}
	if len(data) >= os.Getpagesize() {
		return fmt.Errorf("%d layers: mount(2) takes no more than %d bytes of options", len(e.Layers), os.Getpagesize())
	}
	if o.who.mapped() {
		if slices.Contains(e.Layers, "/"+e.Name) { // what root alone may read of the host would be the container's
			return errors.New("a layer is the host's own folder: want a container without ids of its own")
		}
		return o.stage(e, data)
	}
	o.mounts = append(o.mounts, &configs.Mount{
		Device: "overlay", Source: "overlay", Destination: "/" + e.Name, Flags: unix.MS_NODEV, Data: data,
	})
	return nil
}

// stage has an overlay mounted by root, who may give its layers the container's ids, before the container is entered.
func (o *overlays) stage(e Entry, data string) error {
	at := filepath.Join(o.spec.Dir, "stage", strconv.Itoa(len(o.mounts)))
	if err := os.MkdirAll(at, 0o711); err != nil {
		return err
	}
	o.staged = append(o.staged, stagedOverlay{at: at, data: data})
	o.mounts = append(o.mounts, bind(at, "/"+e.Name, unix.MS_NODEV))
	return nil
}

// shown binds a folder of the host that holds the container's folder: overlayfs takes no upper folder inside a lower
// one.
func (o *overlays) shown(e Entry, at string) error {
	if len(e.Layers) != 1 {
		return fmt.Errorf("the container's folder %s lies in a layer", o.spec.Dir)
	}
	o.mounts = append(o.mounts, readonly(e.Layers[0], "/"+e.Name))
	return os.Mkdir(at, 0o755)
}

// within tells whether path is dir or below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// writable makes the upper folder, with owner and mode of the image's, and the one that overlayfs works in. No part of
// their names is the image's, for it might end an option.
func (o *overlays) writable(e Entry) (upper, work string, err error) {
	number := strconv.Itoa(len(o.mounts))
	dir := filepath.Join(o.spec.Dir, "upper", number)
	for _, path := range []string{dir, dir + "/u", dir + "/w"} {
		if err := os.Mkdir(path, 0o700); err != nil {
			return "", "", err
		}
	}
	var top unix.Stat_t
	if err := unix.Lstat(e.Layers[len(e.Layers)-1], &top); err != nil {
		return "", "", err
	}
	if top.Mode&unix.S_IFMT != unix.S_IFDIR {
		return "", "", fs.ErrInvalid
	}
	if !o.who.rootless {
		give := o.who.give
		if o.spec.Root.Owned {
			give = os.Lchown
		}
		if err := give(dir+"/u", int(top.Uid), int(top.Gid)); err != nil {
			return "", "", err
		}
	}
	// Relative, for short: the mounts are made in the skeleton's folder.
	return "../upper/" + number + "/u", "../upper/" + number + "/w", unix.Chmod(dir+"/u", top.Mode&0o7777)
}

// short gives a layer's folder a name of a few bytes: all options of a mount must fit into one page.
func (o *overlays) short(layer string) (string, error) {
	dir, name := filepath.Split(layer)
	if strings.ContainsAny(name, `:,\`) { // would end the option
		dir, name = layer, ""
	}
	link, ok := o.links[dir]
	if !ok {
		link = "../l/" + strconv.FormatInt(int64(len(o.links)), 36)
		at := filepath.Join(o.root, link)
		var err error
		if o.who.mapped() && !o.spec.Root.Owned { // the layer is mounted there, with other owners
			err = os.Mkdir(at, 0o700)
		} else {
			err = os.Symlink(filepath.Clean(dir), at)
		}
		if err != nil {
			return "", err
		}
		o.links[dir] = link
	}
	if name == "" {
		return link, nil
	}
	return link + "/" + name, nil
}

// etc writes the files that a container has from its host into the writable layer: there they cover whatever the image
// has under these names, also a link that leads elsewhere.
func (s Spec) etc(upper string, who identity) error {
	files := map[string][]byte{"hosts": s.hosts()}
	if s.Hostname != "" {
		files["hostname"] = []byte(s.Hostname + "\n")
	}
	if b, err := os.ReadFile("/etc/resolv.conf"); err == nil {
		files["resolv.conf"] = b
	}
	for name, b := range files {
		path := filepath.Join(upper, name)
		if err := os.WriteFile(path, b, 0o644); err != nil {
			return err
		}
		if err := errors.Join(os.Chmod(path, 0o644), who.give(path, 0, 0)); err != nil { // whatever the umask
			return err
		}
	}
	return nil
}

// copyFile copies a file at an image's top; it follows no link and opens no device.
func copyFile(from, to string) error {
	in, err := os.OpenFile(from, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("not a file, a folder or a link")
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Chmod(info.Mode().Perm()), out.Close())
}

// openWork opens the folders that overlayfs has made for itself, with modes that forbid everything to their owner. Of
// an agent that is killed they stay: a launcher that removes an agent's folders as its user could not enter them.
func (s *Spec) openWork() {
	for _, below := range []string{"", "incompat", "incompat/volatile"} {
		folders, _ := filepath.Glob(filepath.Join(s.Dir, "upper", "*", "w", "work", below)) // the pattern is a good one
		for _, folder := range folders {
			_ = os.Chmod(folder, 0o700) // they stay at worst
		}
	}
}
