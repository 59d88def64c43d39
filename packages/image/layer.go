package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/wait"
)

// layer makes one layer ready and holds it. It returns the folder.
func (p *puller) layer(ctx context.Context, ref layerRef) (string, *lock, error) {
	name := ref.diffID.Encoded() + p.form.mark()
	dir := filepath.Join(p.cache.root, "layers", ref.diffID.Algorithm().String(), name)
	lockName := "layer-" + ref.diffID.Algorithm().String() + "-" + name
	ready := filepath.Join(dir, "fs")
	asked := false
	share := func() (*lock, error) { return p.wait(ctx, lockName, syscall.LOCK_SH) }
	held, err := p.cache.once(ctx, lockName, ready, share, making{
		missing: func() {
			if !asked && p.where.name != nil { // a layout's blobs are where they are
				p.tally.add(func(now *Progress) { now.Total += ref.Size })
				asked = true
			}
		},
		meanwhile: func() {
			if asked {
				p.tally.add(func(now *Progress) { now.Total -= ref.Size })
			}
			asked = false
		},
		make: func() error { return p.make(ctx, ref, dir) },
	})
	if held == nil {
		return "", nil, err
	}
	p.tally.add(func(now *Progress) { now.Ready++ })
	return ready, held, err
}

// making is how a layer's folder is made that is not there.
type making struct {
	missing   func() // it is not there; nil: nobody wants to know
	meanwhile func() // another process has made it before this one could; nil: likewise
	make      func() error
}

// once holds a layer's folder, which is made if it is not there: by one process of the host. share takes the lock that
// its users share. A lock that is returned is held, with an error too.
func (c cache) once(
	ctx context.Context, lockName, ready string, share func() (*lock, error), m making,
) (*lock, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		held, err := share()
		if err != nil {
			return nil, err
		}
		_, err = os.Lstat(ready)
		if err == nil {
			return held, held.Touch()
		}
		if err := errors.Join(held.Release(), unless(err, fs.ErrNotExist)); err != nil {
			return nil, err
		}
		if m.missing != nil {
			m.missing()
		}
		// A process that has made it meanwhile holds it as long as its container lives, so no one waits for an
		// exclusive lock. Between the two locks a cleaner may come: then it is made once more.
		if held, err = c.tryLock(lockName); err != nil {
			return nil, err
		}
		if held == nil {
			if err := wait.For(ctx, again); err != nil {
				return nil, err
			}
			continue
		}
		if _, err := os.Lstat(ready); err == nil { // another agent made it meanwhile
			if m.meanwhile != nil {
				m.meanwhile()
			}
		} else if err := m.make(); err != nil {
			return nil, errors.Join(err, held.Release())
		}
		if err := held.Release(); err != nil {
			return nil, err
		}
	}
}

// again is how soon a lock that another agent had is asked for again.
const again = 20 * time.Millisecond

func (p *puller) wait(ctx context.Context, name string, how int) (*lock, error) {
	waited := false
	held, err := p.cache.lock(ctx, name, how, func() {
		waited = true
		p.tally.add(func(now *Progress) { now.Waiting++ })
		p.Logger.Info("another agent makes this layer: waiting for it", "image", p.where.text, "layer", name)
	})
	if waited {
		p.tally.add(func(now *Progress) { now.Waiting-- })
	}
	return held, err
}

// make fetches and unpacks a layer beside its final folder and renames it: a layer that exists is complete. The caller
// holds its lock.
func (p *puller) make(ctx context.Context, ref layerRef, dir string) (err error) {
	if ref.Size > p.MaxBytes { // before it fills the disk; no tar is smaller unpacked
		return refuse("%s: got a blob of %d bytes, want at most %d", ref.Digest, ref.Size, p.MaxBytes)
	}
	fresh := dir + ".new"
	if err := p.form.removeAll(fresh); err != nil { // of an agent that was killed here
		return err
	}
	from, err := p.source.layer(ctx, ref.Descriptor)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, from.Close(), p.form.removeAll(fresh))
		}
	}()
	if err := os.MkdirAll(filepath.Join(fresh, "fs"), 0o755); err != nil {
		return err
	}
	if err := os.Chmod(filepath.Join(fresh, "fs"), 0o755); err != nil { // whatever the umask
		return err
	}
	u := unpacker{form: p.form, maxFiles: p.MaxFiles, maxBytes: limit(p.MaxBytes, ref.Size)}
	if err := u.unpack(ctx, from, ref, filepath.Join(fresh, "fs")); err != nil {
		return fmt.Errorf("%s: %w", ref.Digest, err)
	}
	if len(u.left) > 0 {
		p.Logger.Warn("entries of a layer were left out", "image", p.where.text, "layer", ref.Digest, "entries", u.left,
			"count", u.leftOut)
	}
	if err := toDisk(fresh); err != nil {
		return err
	}
	if err := os.Rename(fresh, dir); err != nil {
		return err
	}
	if err := from.done(); err != nil { // the layer is there all the same
		p.Logger.Warn("blob stays after its layer was unpacked", "image", p.where.text, "layer", ref.Digest, "err", err)
	}
	return nil
}

// toDisk: a name that is there after a power cut must not stand for files that are not.
func toDisk(dir string) (err error) {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

// unless hides an error that was expected.
func unless(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}
