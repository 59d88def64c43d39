package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/muster-agent/muster/shim/store"
)

// Wanted is a file in the vault's store and the name that it gets in a folder.
type Wanted struct {
	From string
	Size int64 // bytes
	To   string
}

// Receive copies files of the vault's store into a folder.
type Receive func(ctx context.Context, to *os.Root, files []Wanted) error

// Owner is whom files are given to; nil: they stay the agent's.
type Owner struct{ UID, GID int }

// Bring lays a checkpoint out in a folder: under another name, checked to the last byte, then file by file in its
// place, those last that make it whole. A file of the same name is replaced. by names who does it: others may bring the
// same.
func (v Vault) Bring(ctx context.Context, m Manifest, to *os.Root, by string, owner *Owner, receive Receive) (err error) {
	tmp := ownNames + "bring-" + by
	if err := errors.Join(to.RemoveAll(tmp), to.Mkdir(tmp, 0o700)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.RemoveAll(tmp)) }()
	room, err := to.OpenRoot(tmp)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, room.Close()) }()
	dir := v.Folder(m.Kept())
	var files []Wanted
	for _, f := range m.Files {
		files = append(files, Wanted{From: dir + "/" + filesName + "/" + f.Path, Size: f.Size, To: f.Path})
	}
	if err := receive(ctx, room, files); err != nil {
		return v.lacks(ctx, dir, files, err)
	}
	for i, f := range m.Files {
		err := verify(ctx, room, f)
		if errors.Is(err, errOther) {
			err = v.proved(ctx, files[i].From, f, err)
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", dir, f.Path, err)
		}
	}
	for _, f := range m.Files {
		if err := place(to, tmp, f.Path, owner); err != nil {
			return fmt.Errorf("lay out %s: %w", f.Path, err)
		}
	}
	return settle(to)
}

// lacks tells of what could not be received whether the store lacks a file, or the folder here was taken away
// meanwhile.
func (v Vault) lacks(ctx context.Context, dir string, files []Wanted, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return v.torn(ctx, dir, err)
	}
	for _, f := range files {
		if _, err := v.Store.Stat(ctx, f.From); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w: %w", f.From, err, ErrTorn)
		}
	}
	return err
}

// errOther are bytes that are not those of the manifest.
var errOther = errors.New("other bytes than were stored")

// proved reads once more, from the store alone, what came here as something else: only if that is wrong as well is the
// copy torn, for all. A disk of this host that changes bytes condemns nothing.
func (v Vault) proved(ctx context.Context, from string, want ManifestFile, came error) error {
	c, err := v.Store.Open(ctx, from, store.Position{})
	if err != nil {
		return errors.Join(came, err)
	}
	sum, n, err := hashOf(ctx, c)
	if err := errors.Join(err, c.Close()); err != nil {
		return errors.Join(came, err)
	}
	if n != want.Size || sum != want.SHA256 {
		return fmt.Errorf("%w: %w", came, ErrTorn)
	}
	return fmt.Errorf("%w, though the store has it: is the disk here sound?", came)
}

func verify(ctx context.Context, room *os.Root, want ManifestFile) (err error) {
	f, err := room.OpenFile(want.Path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum, n, err := hashOf(ctx, f)
	switch {
	case err != nil:
		return err
	case n != want.Size:
		return fmt.Errorf("%d bytes, want %d: %w", n, want.Size, errOther)
	case sum != want.SHA256:
		return fmt.Errorf("sha256 %s, want %s: %w", sum, want.SHA256, errOther)
	}
	return f.Sync() // once it has its name it is whole, also after a loss of power
}

// place gives one file its name, its owner and the folders above it.
func place(to *os.Root, tmp, name string, owner *Owner) error {
	made := ""
	for element := range strings.SplitSeq(path.Dir(name), "/") {
		if made = path.Join(made, element); made == "." {
			continue
		}
		err := to.Mkdir(made, 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil && owner != nil {
			err = to.Lchown(made, owner.UID, owner.GID)
		}
		if err != nil {
			return err
		}
	}
	from := path.Join(tmp, name)
	if owner != nil {
		if err := to.Lchown(from, owner.UID, owner.GID); err != nil {
			return err
		}
	}
	return to.Rename(from, name)
}

// settle makes the names of a folder outlive a loss of power.
func settle(root *os.Root) error {
	f, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
