package data

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/store"
)

func (l Leave) saves() string { return strings.Trim(cmp.Or(l.Saves, plan.DefaultSaves), "/") }

// SaveDir is the folder of an interim save, for all instances.
func (l Leave) SaveDir(stamp string) string { return path.Join(l.Out, l.saves()+stamp) }

// Save is one interim save of a folder that a process still writes to.
type Save struct {
	Leave
	Stamp string
	// Since are the files as the last save found them; files that have not changed are not copied. nil: all are copied.
	Since Seen
	// Pause is called before a file that changed while it was copied is tried again; nil: without a pause.
	Pause func(context.Context) error
}

// Seen are the files of a folder as a save has copied them.
type Seen map[string]look

// Saved is what a save has copied.
type Saved struct {
	Left
	Restless []string // files that changed during each copy, and are not part of the save
	Seen     Seen     // for the next save's Since
}

// restlessTries is how often a file is copied that changes meanwhile.
const restlessTries = 3

// Run copies the folder to SaveDir/<Folder>, which gets its name when it is complete. Each file is as it was at some
// moment between begin and end.
func (s Save) Run(ctx context.Context, from store.Folder, how transfer.Transfer) (Saved, error) {
	saved, err := s.run(ctx, from, how)
	if err != nil {
		err = fmt.Errorf("save %s in %s: %w", from.Name(), s.SaveDir(s.Stamp), transfer.Explain(err, s.Out))
		return Saved{}, errors.Join(err, absent(s.Store.Remove(context.WithoutCancel(ctx), s.half())))
	}
	return saved, nil
}

// half is the incomplete copy, in the instance's folder, which is cleared at the end in any case.
func (s Save) half() string { return path.Join(s.place(), halfName+"save-"+s.Turn) }

func (s Save) run(ctx context.Context, from store.Folder, how transfer.Transfer) (Saved, error) {
	t := tree{root: from, moving: true}
	if err := t.read(ctx, ".", 0); err != nil {
		return Saved{}, err
	}
	t.files = slices.DeleteFunc(t.files, func(e entry) bool {
		was, ok := s.Since[e.name]
		return ok && was.same(e.look)
	})
	if err := absent(s.Store.Remove(ctx, s.half())); err != nil {
		return Saved{}, err
	}
	uploads, err := t.uploads(ctx, s.Store, s.half())
	if err != nil {
		return Saved{}, err
	}
	saved := Saved{Left: Left{Skipped: t.odd}, Seen: maps.Clone(s.Since)}
	if saved.Seen == nil {
		saved.Seen = Seen{}
	}
	var mu sync.Mutex
	err = how.SendEach(ctx, s.Store, uploads, func(ctx context.Context, i int, send func(context.Context) error) error {
		is, ok, err := s.still(ctx, uploads[i], send)
		mu.Lock()
		defer mu.Unlock()
		if err == nil && ok {
			saved.Files, saved.Bytes, saved.Seen[uploads[i].Name] = saved.Files+1, saved.Bytes+is.size, is
		} else if err == nil {
			saved.Restless = append(saved.Restless, uploads[i].Name)
		}
		return err
	})
	if err == nil {
		slices.Sort(saved.Restless)
		err = s.keep(ctx)
	}
	return saved, err
}

// keep gives the copy its name. It replaces an earlier save of the same stamp, which is of this instance.
func (s Save) keep(ctx context.Context) error {
	to := path.Join(s.SaveDir(s.Stamp), s.Folder)
	err := s.Store.MkdirAll(ctx, s.SaveDir(s.Stamp))
	if err == nil {
		err = absent(s.Store.Remove(ctx, to))
	}
	if err == nil {
		err = s.Store.Rename(ctx, s.half(), to)
	}
	return err
}

// still copies a file that must not change meanwhile; false: it changes again and again, or was removed.
func (s Save) still(
	ctx context.Context, p store.Upload, send func(context.Context) error,
) (is look, ok bool, err error) {
	for try := range restlessTries {
		if try > 0 && s.Pause != nil {
			if err := s.Pause(ctx); err != nil {
				return is, false, err
			}
		}
		before, err := lookAt(p)
		if errors.Is(err, fs.ErrNotExist) {
			return is, false, nil
		}
		if err != nil {
			return is, false, err
		}
		err = send(ctx)
		after, lost := lookAt(p)
		_, size := errors.AsType[*transfer.SizeError](err)
		gone := errors.Is(lost, fs.ErrNotExist)
		switch {
		case err == nil && lost == nil && before.same(after):
			return before, true, nil
		case err != nil && !size && !gone || lost != nil && !gone:
			return is, false, errors.Join(err, lost)
		}
		if err := absent(s.Store.Remove(ctx, p.To)); err != nil {
			return is, false, err
		}
		if gone {
			return is, false, nil
		}
	}
	return is, false, nil
}

func lookAt(p store.Upload) (look, error) {
	info, err := p.From.Stat(p.Name)
	if err != nil {
		return look{}, err
	}
	return lookOf(info), nil
}

func (l look) same(o look) bool { return l.size == o.size && l.at.Equal(o.at) }
