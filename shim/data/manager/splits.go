package manager

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"

	"github.com/muster-agent/muster/shim/data/stream"
	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/store"
)

// mostSplits bounds the list of splits, in bytes: some five million of them. A class that makes splits without end
// must not fill the disk, nor the store that the readers share.
const mostSplits = 1 << 30

// splitList is the list of all splits, a line each. It lies on the disk of the instance's folder, without a name there:
// the agent holds none of it, however long it is. Its file is closed at the latest when nothing refers to it.
type splitList struct {
	*stream.Cache

	at    string // its folder, for errors
	all   int    // lines
	bytes int64
}

// keepSplits keeps the list that fill writes.
func (m *Manager) keepSplits(p plan.Plan, fill func(io.Writer) error) (*splitList, error) {
	cache, err := m.newCache(p, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	l := &splitList{Cache: cache, at: p.Process.Folder}
	if err = fill(l); err == nil {
		err = l.explain(l.Done())
	}
	if err != nil {
		_ = l.Close() // it has no name and leaves nothing
		return nil, err
	}
	return l, nil
}

func (l *splitList) Write(b []byte) (int, error) {
	if l.bytes += int64(len(b)); l.bytes > mostSplits {
		return 0, fmt.Errorf("the list of splits is longer than %d MB: ask for fewer with muster.inputs.splits, or "+
			"have the class make larger ones", mostSplits>>20)
	}
	l.all += bytes.Count(b, []byte("\n"))
	n, err := l.Cache.Write(b)
	return n, l.explain(err)
}

func (l *splitList) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("keep the list of splits in %s: %w", l.at, transfer.Explain(err, l.at))
}

// feedOwn writes the splits of one reader.
func (l *splitList) feedOwn(ctx context.Context, turn stream.Turn, to io.Writer) error {
	buffered := bufio.NewWriter(to)
	own := &ownLines{to: buffered, turn: turn, all: l.all}
	if err := l.Feed(ctx, own, &stream.Count{}); err != nil {
		return err
	}
	return buffered.Flush()
}

// ownLines passes on the lines of a list that are one reader's.
type ownLines struct {
	to      io.Writer
	turn    stream.Turn
	at, all int
}

func (o *ownLines) Write(b []byte) (int, error) {
	for line := range bytes.Lines(b) { // the last one may go on in the next write
		if o.turn.Has(o.at, o.all) {
			if _, err := o.to.Write(line); err != nil {
				return 0, err
			}
		}
		if line[len(line)-1] == '\n' {
			o.at++
		}
	}
	return len(b), nil
}

// sharedList is a list of splits in a store that all readers see:
//
//	<runs>/<run>/half-<name>-<turn>/list  while it is written
//	<runs>/<run>/<name>/list              then, by one rename, of whoever is first
type sharedList struct {
	store      store.Store
	runs, run  string // runs is the folder above the runs' own
	name, turn string
}

func (l sharedList) explain(url string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("share the list of splits in %s: %w", url, store.Refused(l.runs, err))
}

func (l sharedList) read(ctx context.Context, to io.Writer) (err error) {
	content, err := l.store.Open(ctx, l.place(), store.Position{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	_, err = io.Copy(to, content)
	return err
}

func (l sharedList) place() string { return path.Join(l.run, l.name, "list") }

// share gives the list that write writes to all; first is false where another reader was faster. It removes no other
// run's: one of the same name in another registry may be at work.
func (l sharedList) share(ctx context.Context, write func(io.Writer) error) (first bool, err error) {
	half := path.Join(l.run, "half-"+l.name+"-"+l.turn)
	if err := l.store.Remove(ctx, half); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	file, err := l.store.Create(ctx, path.Join(half, "list"))
	if err != nil {
		return false, err
	}
	if err = errors.Join(write(file), file.Close()); err != nil {
		return false, err
	}
	if err = l.store.Rename(ctx, half, path.Join(l.run, l.name)); err == nil {
		return true, nil
	}
	if _, missing := l.store.Stat(ctx, l.place()); missing != nil {
		return false, err
	}
	_ = l.store.Remove(ctx, half) // it goes with the run at the latest
	return false, nil
}

// forgetSplits removes the lists of a run that has its verdict.
func (m *Manager) forgetSplits(ctx context.Context, p plan.Plan) {
	if p.Inputs == nil || p.Inputs.Shared == "" {
		return
	}
	opened, at, err := m.cfg.Stores.Open(ctx, p, p.Inputs.Shared, true)
	if err == nil {
		err = opened.Remove(ctx, path.Join(at, m.outputsOwner()))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.cfg.Log.Warn("list of splits not removed", "in", p.Inputs.Shared, "err", err)
	}
}
