package image

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Owners are the ids of the host that an image's users and groups become.
type Owners struct {
	// Key tells them from others: two with the same key give the same ids.
	Key      string
	UID, GID func(inside int) (outside int, ok bool)
}

// mark keeps the layers of different owners apart.
func (o Owners) mark() string {
	sum := sha256.Sum256([]byte(o.Key))
	return "-o" + hex.EncodeToString(sum[:16])
}

// errOwner says that a file of an image has an owner who is none of the container's users and groups.
var errOwner = errors.New("its owner is none of the users and groups of a container, which are 0 to 65535: build the " +
	"image with owners among these")

// WithOwners is the image with its layers once more, copied in the cache with other owners. It is for hosts that cannot
// mount the layers so. The copies stay until Close; this image must stay until WithOwners returns.
func (i *Image) WithOwners(ctx context.Context, owners Owners) (_ *Image, err error) {
	if i.UserXattr {
		return nil, &Error{Ref: i.Ref, Err: errors.New("an ordinary user can give files no other owner")}
	}
	owned := *i
	owned.Layers, owned.held = nil, nil
	defer func() {
		if err != nil {
			err = &Error{Ref: i.Ref, Err: errors.Join(err, owned.Close())}
		}
	}()
	for n, layer := range i.Layers {
		dir := filepath.Dir(layer)
		to := dir + owners.mark()
		name := "layer-" + filepath.Base(filepath.Dir(dir)) + "-" + filepath.Base(to)
		ready := filepath.Join(to, "fs")
		share := func() (*lock, error) { return i.cache.lock(ctx, name, syscall.LOCK_SH, func() {}) }
		held, err := i.cache.once(ctx, name, ready, share, making{
			make: func() error { return giveOwners(ctx, layer, to, owners) },
		})
		if held != nil {
			owned.held = append(owned.held, held)
		}
		if err != nil {
			return nil, fmt.Errorf("layer %d of %d, with the container's owners: %w", n+1, len(i.Layers), err)
		}
		owned.Layers = append(owned.Layers, ready)
	}
	return &owned, nil
}

// giveOwners copies a layer beside its final folder and renames the copy: one that exists is complete. The caller holds
// its lock.
func giveOwners(ctx context.Context, layer, dir string, owners Owners) (err error) {
	fresh := dir + ".new"
	if err := os.RemoveAll(fresh); err != nil { // of an agent that was killed here
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(fresh))
		}
	}()
	if err := os.MkdirAll(filepath.Join(fresh, "fs"), 0o700); err != nil {
		return err
	}
	c := copier{owners: owners, first: map[uint64]string{}}
	if c.from, err = os.OpenRoot(layer); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.from.Close()) }()
	if c.to, err = os.OpenRoot(filepath.Join(fresh, "fs")); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.to.Close()) }()
	if err := c.folder(ctx, "."); err != nil {
		return err
	}
	if err := toDisk(fresh); err != nil {
		return err
	}
	return os.Rename(fresh, dir)
}

// copier copies one layer. Both folders are of the cache, in which nobody else writes.
type copier struct {
	from, to *os.Root
	owners   Owners
	first    map[uint64]string // inode of a file with several names → the first of them
}

// folder copies what is in a folder, and then what the folder itself has.
func (c *copier) folder(ctx context.Context, name string) error {
	dir, err := c.from.Open(name)
	if err != nil {
		return err
	}
	entries, err := dir.ReadDir(-1)
	if err := errors.Join(err, dir.Close()); err != nil {
		return err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.entry(ctx, filepath.Join(name, e.Name())); err != nil {
			return err
		}
	}
	info, err := c.from.Lstat(name)
	if err != nil {
		return err
	}
	return c.finish(name, info)
}

func (c *copier) entry(ctx context.Context, name string) error {
	info, err := c.from.Lstat(name)
	if err != nil {
		return err
	}
	is, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fs.ErrInvalid
	}
	if !info.IsDir() && is.Nlink > 1 {
		if first, ok := c.first[is.Ino]; ok {
			return c.to.Link(first, name)
		}
		c.first[is.Ino] = name
	}
	switch kind := info.Mode().Type(); {
	case kind == fs.ModeDir:
		if err := c.to.Mkdir(name, 0o700); err != nil {
			return err
		}
		return c.folder(ctx, name)
	case kind == 0:
		err = c.content(name)
	case kind == fs.ModeSymlink:
		var target string
		if target, err = c.from.Readlink(name); err == nil {
			err = c.to.Symlink(target, name)
		}
	case kind == fs.ModeNamedPipe:
		err = unix.Mkfifo(filepath.Join(c.to.Name(), name), 0o600)
	case isWhiteout(info):
		return unix.Mknod(filepath.Join(c.to.Name(), name), unix.S_IFCHR, 0)
	default:
		err = refuse("%s: got a file of type %s", printable(name), kind)
	}
	if err != nil {
		return err
	}
	return c.finish(name, info)
}

func (c *copier) content(name string) (err error) {
	in, err := c.from.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := c.to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// finish gives a copy its owner, attributes, mode and time, in this order: a change of owner takes the set-user-ID bit
// and the capabilities away.
func (c *copier) finish(name string, info fs.FileInfo) error {
	is, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fs.ErrInvalid
	}
	uid, known := c.owners.UID(int(is.Uid))
	gid, knownGroup := c.owners.GID(int(is.Gid))
	if !known || !knownGroup {
		return fmt.Errorf("%s, of %d:%d: %w", printable(name), is.Uid, is.Gid, errOwner)
	}
	if err := c.to.Lchown(name, uid, gid); err != nil {
		return err
	}
	if err := c.attributes(name); err != nil {
		return fmt.Errorf("attributes of %s: %w", printable(name), err)
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		if err := c.to.Chmod(name, info.Mode()); err != nil {
			return err
		}
	}
	times := []unix.Timespec{unix.Timespec(is.Atim), unix.Timespec(is.Mtim)}
	return unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(c.to.Name(), name), times, unix.AT_SYMLINK_NOFOLLOW)
}

// attributes copies what the unpacker has left of a file's attributes, and overlayfs's marks.
func (c *copier) attributes(name string) error {
	from, to := filepath.Join(c.from.Name(), name), filepath.Join(c.to.Name(), name)
	list := make([]byte, maxXattrs)
	n, err := unix.Llistxattr(from, list)
	if err != nil {
		return err
	}
	value := make([]byte, maxXattrs)
	for attribute := range strings.SplitSeq(string(list[:n]), "\x00") {
		kept := attribute == capabilityXattr || strings.HasPrefix(attribute, "user.") ||
			strings.HasPrefix(attribute, "trusted.overlay.")
		if !kept { // a security label is the host's
			continue
		}
		size, err := unix.Lgetxattr(from, attribute, value)
		if err != nil {
			return err
		}
		text := value[:size]
		if attribute == capabilityXattr {
			if text, err = c.capabilities(text); err != nil {
				return err
			}
		}
		if err := unix.Lsetxattr(to, attribute, text, 0); err != nil {
			return err
		}
	}
	return nil
}

// Forms of a file's capabilities (linux/capability.h): the third names the root of the user namespace they are for.
const (
	capabilityXattr = "security.capability"
	capsRevision    = 0xff00_0000
	capsOfHost      = 0x0200_0000
	capsOfNamespace = 0x0300_0000
	capsOfHostBytes = 20
	capsBytes       = 24
)

// capabilities makes a file's capabilities those of the container's root.
func (c *copier) capabilities(text []byte) ([]byte, error) {
	if len(text) != capsOfHostBytes && len(text) != capsBytes {
		return nil, refuse("got %d bytes of capabilities", len(text))
	}
	root, magic := 0, binary.LittleEndian.Uint32(text)
	if len(text) == capsBytes {
		root = int(binary.LittleEndian.Uint32(text[capsOfHostBytes:]))
	} else if magic&capsRevision != capsOfHost {
		return nil, refuse("got capabilities of revision %#x", magic&capsRevision)
	}
	root, ok := c.owners.UID(root)
	if !ok {
		return nil, fmt.Errorf("capabilities: %w", errOwner)
	}
	out := binary.LittleEndian.AppendUint32(nil, magic&^capsRevision|capsOfNamespace)
	out = append(out, text[4:capsOfHostBytes]...)
	return binary.LittleEndian.AppendUint32(out, uint32(root)), nil //nolint:gosec // an id of the kernel's
}
