package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"time"
)

// sweepAgain is for how long a store is not swept again by those who write runs: each looks at all of it.
const sweepAgain = time.Hour

// Over are the runs of this store that a bound does not keep, the oldest first, and their sizes. current stays. What
// cannot be read is left out: odd says why.
func (s *Store) Over(
	ctx context.Context, b Bound, current Entry, now time.Time,
) (over []Entry, odd []error, err error) {
	_, all, odd, err := s.List(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := s.weigh(ctx, all); err != nil {
		return nil, nil, err
	}
	return b.over(all, current, now), odd, nil
}

// weigh finds out how large runs are.
func (s *Store) weigh(ctx context.Context, all []Entry) error {
	return s.explain(each(len(all), func(i int) (err error) {
		all[i].Bytes, err = s.size(ctx, s.path(all[i].path()))
		return err
	}))
}

// size is how many bytes the files of a folder have that may be read.
func (s *Store) size(ctx context.Context, folder string) (bytes int64, err error) {
	infos, err := s.in.List(ctx, folder)
	var unread oddities
	err = unread.leave(ctx, err)
	for _, i := range infos {
		n := max(0, i.Size)
		if i.Dir {
			var below error
			n, below = s.size(ctx, i.Path)
			err = errors.Join(err, below)
		}
		bytes += n
	}
	return bytes, err
}

// Remove takes a run out of the store, its run.json first, and its app's folder with the last one. It may be gone.
func (s *Store) Remove(ctx context.Context, e Entry) error {
	s.mu.Lock()
	s.list = listing{}
	s.mu.Unlock()
	for _, at := range []string{path.Join(e.path(), runFile), e.path()} {
		if err := s.in.Remove(ctx, s.path(at)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return s.explain(err)
		}
	}
	return s.explain(s.in.Prune(ctx, s.path(e.App)))
}

// Sweep removes what the bound does not keep, unless somebody has done so within the last hour. Runs of other users
// stay where only they may remove them. What there is no time for is left to the next one, who need not wait so long:
// the oldest runs go first, and nothing is weighed that is older than what fits.
func (w *Writer) Sweep(ctx context.Context, b Bound, now time.Time) (gone []Entry, err error) {
	mark := w.s.path(sweptFile + strconv.Itoa(os.Geteuid()))
	if info, err := w.s.in.Stat(ctx, mark); err == nil && now.Sub(info.ModTime) < sweepAgain {
		return nil, nil
	}
	unmarked := w.s.in.Remove(ctx, mark) // without a mark everybody sweeps
	if unmarked == nil || errors.Is(unmarked, fs.ErrNotExist) {
		var out io.WriteCloser
		out, unmarked = w.s.in.Create(ctx, mark)
		if errors.Is(unmarked, fs.ErrExist) {
			return nil, nil // another one sweeps now
		}
		if unmarked == nil {
			_ = out.Close() // it has no content
		}
	}
	gone, err = w.sweep(ctx, b, now)
	if ctx.Err() != nil {
		again, cancel := context.WithTimeout(context.WithoutCancel(ctx), unmarkPatience)
		defer cancel()
		_ = w.s.in.Remove(again, mark) // else the next sweep is in an hour
		return gone, nil
	}
	switch {
	case err != nil:
		return gone, fmt.Errorf("old runs were not removed: %w", err)
	case unmarked != nil:
		return gone, fmt.Errorf("old runs were removed, and each run's end does so again, as no mark of it can be "+
			"left: %w", w.s.explain(unmarked))
	}
	return gone, nil
}

// unmarkPatience bounds how long the mark of a sweep that has no time left takes to go.
const unmarkPatience = 2 * time.Second

func (w *Writer) sweep(ctx context.Context, b Bound, now time.Time) (gone []Entry, err error) {
	_, all, _, err := w.s.List(ctx)
	if err != nil {
		return nil, err
	}
	if gone, err = w.clear(ctx, Bound{Age: b.Age}.over(all, w.e, now)); err != nil || b.Bytes == 0 {
		return gone, err
	}
	all = slices.DeleteFunc(all, func(e Entry) bool { return slices.Contains(gone, e) })
	much, err := beyond(b.Bytes, all, w.e, func(some []Entry) error { return w.s.weigh(ctx, some) })
	if err != nil {
		return gone, err
	}
	more, err := w.clear(ctx, much)
	return append(gone, more...), err
}

// beyond are the runs beside which so many bytes of newer ones are kept, the oldest first: what a bound is over, but
// that only what is kept is weighed. The current one stays, and takes its part.
func beyond(most int64, all []Entry, current Entry, weigh func([]Entry) error) ([]Entry, error) {
	slices.SortFunc(all, func(x, y Entry) int {
		return cmp.Or(y.Changed.Compare(x.Changed), cmp.Compare(y.path(), x.path()))
	})
	if i := slices.IndexFunc(all, func(e Entry) bool { return e.path() == current.path() }); i > 0 {
		all = slices.Insert(slices.Delete(slices.Clone(all), i, i+1), 0, all[i])
	}
	kept := int64(0)
	for at := 0; at < len(all); at += atOnce {
		part := all[at:min(at+atOnce, len(all))]
		if err := weigh(part); err != nil {
			return nil, err
		}
		for i, e := range part {
			if kept += e.Bytes; kept > most && e.path() != current.path() {
				over := all[at+i:]
				slices.Reverse(over)
				return over, nil
			}
		}
	}
	return nil, nil
}

// clear removes runs, but for those that only another user may remove.
func (w *Writer) clear(ctx context.Context, over []Entry) (gone []Entry, err error) {
	for _, e := range over {
		switch err := w.s.Remove(ctx, e); {
		case errors.Is(err, fs.ErrPermission):
		case err != nil:
			return gone, err
		default:
			gone = append(gone, e)
		}
	}
	return gone, nil
}
