package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"syscall"

	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/store"
)

// receiver copies files of the store into a folder of this host.
type receiver func(ctx context.Context, to transfer.Folder, files []transfer.Copy) error

// Bring copies a checkpoint into a folder: first under a temporary name, where each byte is checked, then file by file,
// the files that complete it last. A file of the same name is replaced. by names the agent: others may bring the same
// step.
func (s Store) Bring(
	ctx context.Context, m Manifest, to files.UserFolder, by string, receive receiver,
) (err error) {
	tmp := ownNames + "bring-" + by
	if err := errors.Join(to.RemoveAll(tmp), to.Mkdir(tmp, 0o700)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.RemoveAll(tmp)) }()
	room, err := to.OpenFolder(tmp)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, room.Close()) }()
	dir := s.Folder(m.Copy())
	var copies []transfer.Copy
	for _, f := range m.Files {
		from := transfer.File{Store: s.Files, Path: dir + "/" + filesName + "/" + f.Path, Size: f.Size}
		copies = append(copies, transfer.Copy{From: from, To: f.Path})
	}
	if err := receive(ctx, room, copies); err != nil {
		return s.lacks(ctx, dir, copies, err)
	}
	for i, f := range m.Files {
		err := verify(ctx, room, f)
		if errors.Is(err, errOther) {
			err = s.proved(ctx, copies[i].From.Path, f, err)
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", dir, f.Path, err)
		}
	}
	for _, f := range m.Files {
		if err := place(to, tmp, f.Path); err != nil {
			return fmt.Errorf("lay out %s: %w", f.Path, err)
		}
	}
	return syncNames(to)
}

// lacks tells why a checkpoint was not received: the store lacks a file, or the folder of this host was removed
// meanwhile.
func (s Store) lacks(ctx context.Context, dir string, copies []transfer.Copy, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return s.torn(ctx, dir, err)
	}
	for _, f := range copies {
		if _, err := s.Files.Stat(ctx, f.From.Path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w: %w", f.From.Path, err, errTorn)
		}
	}
	return err
}

// errOther is a file that differs from the manifest.
var errOther = errors.New("other bytes than were stored")

// proved reads a differing file again, from the store alone. Only if the store's bytes differ as well is the copy torn
// for the whole gang: a bad disk of this host condemns nothing.
func (s Store) proved(ctx context.Context, from string, want manifestFile, came error) error {
	c, err := s.Files.Open(ctx, from, store.Position{})
	if err != nil {
		return errors.Join(came, err)
	}
	sum, n, err := hashOf(ctx, c)
	if err := errors.Join(err, c.Close()); err != nil {
		return errors.Join(came, err)
	}
	if n != want.Size || sum != want.SHA256 {
		return fmt.Errorf("%w: %w", came, errTorn)
	}
	return fmt.Errorf("%w, though the store has it: is the disk here sound?", came)
}

func verify(ctx context.Context, room files.UserFolder, want manifestFile) (err error) {
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
	return f.Sync() // a file that has its name is complete, also after a loss of power
}

// place gives one file its name and the folders above it.
func place(to files.UserFolder, tmp, name string) error {
	if dir := path.Dir(name); dir != "." {
		if err := to.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return to.Rename(path.Join(tmp, name), name)
}

// syncNames makes the names of a folder outlive a loss of power.
func syncNames(root files.UserFolder) error {
	f, err := root.OpenFile(".", os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
