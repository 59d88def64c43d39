package data

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/store"
)

// Leave leaves a folder of a process in a store, completely or not at all, and only after the job's verdict:
//
//	<Out>/_temporary/<Run>/<Folder>/               the instance's folder, until its outputs are settled
//	<Out>/_temporary/<Run>/<Folder>/half-<Turn>/…  while it is copied
//	<Out>/_temporary/<Run>/<Folder>/whole/…        then, by one rename, until the verdict
//	<Out>/<Folder>/…                               then, by one rename
//	<Out>/_SUCCESS                                 when no folder of the run is left, after a success
//
// Every step can be repeated by the agent that follows a killed one.
type Leave struct {
	Store  store.Store
	Out    string // path in the store
	Folder string // the name that it gets there
	Run    string // APP@RUN: one life of an app
	Turn   string // of the copying agent: no two agents write to one copy
	// Saves is the folder of interim saves below Out, which are no outputs. Empty: plan.DefaultSaves.
	Saves string
}

// TakenError is an output that exists already and is not of this run.
type TakenError struct{ Out, Path string }

func (e *TakenError) Error() string {
	return fmt.Sprintf("output %s: %s is there already; remove it, or name another place", e.Out, e.Path)
}

const (
	wholeName = "whole"
	halfName  = "half-"
	// owedName marks an instance whose outputs could not be copied after the verdict: the job gets no _SUCCESS.
	owedName = "owed"
)

func (l Leave) final() string { return path.Join(l.Out, l.Folder) }
func (l Leave) run() string   { return path.Join(l.Out, transfer.Temporary, l.Run) }
func (l Leave) place() string { return path.Join(l.run(), l.Folder) }
func (l Leave) whole() string { return path.Join(l.place(), wholeName) }

// Half is the folder to write to until it is complete: Begin makes it, Seal ends it.
func (l Leave) Half() string { return path.Join(l.place(), halfName+l.Turn) }

// Prepare makes the instance's folder in Out. It finds the reasons why outputs cannot be left before the work is done:
// an output that exists (*TakenError), or a folder that cannot be written. The first instance of a run looks; the run's
// folder tells the others, later generations and relaunched agents that the output is free.
func (l Leave) Prepare(ctx context.Context) error {
	_, err := l.Store.Stat(ctx, l.run())
	if err != nil {
		if info, lost := l.Store.Stat(ctx, l.Out); lost == nil && !info.Dir {
			return &TakenError{l.Out, l.Out}
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = l.admit(ctx)
	}
	if err == nil {
		err = l.Store.MkdirAll(ctx, l.place())
	}
	if err == nil {
		err = l.Clear(ctx)
	}
	if _, taken := errors.AsType[*TakenError](err); err == nil || taken {
		return err
	}
	return fmt.Errorf("output %s: %w", l.Out, store.Refused(l.Out, err))
}

// Rivals are runs of other apps that are leaving outputs of the same name here, or never ended. The one that ends later
// will find its name taken. If both ask after Prepare, at least one of two that begin at once sees the other.
func (l Leave) Rivals(ctx context.Context) ([]string, error) {
	app, _, _ := strings.Cut(l.Run, "@")
	runs, err := l.names(ctx, path.Join(l.Out, transfer.Temporary))
	var rivals []string
	for _, name := range runs {
		if strings.HasPrefix(name, app+"@") {
			continue
		}
		switch _, lost := l.Store.Stat(ctx, path.Join(l.Out, transfer.Temporary, name, l.Folder)); {
		case lost == nil:
			rivals = append(rivals, name)
		case !errors.Is(lost, fs.ErrNotExist):
			err = errors.Join(err, lost)
		}
	}
	return rivals, err
}

// admit refuses an output that has files, except other runs' temporary ones and interim saves. Unfinished outputs of
// earlier runs of the app are removed: an app has one run at a time.
func (l Leave) admit(ctx context.Context) error {
	held, err := l.occupied(ctx, l.Out, 0)
	if err != nil {
		return err
	}
	if held != "" {
		return &TakenError{l.Out, held}
	}
	app, _, _ := strings.Cut(l.Run, "@")
	dead, err := l.names(ctx, path.Join(l.Out, transfer.Temporary))
	for _, name := range dead {
		if strings.HasPrefix(name, app+"@") && name != l.Run {
			err = errors.Join(err, absent(l.Store.Remove(ctx, path.Join(l.Out, transfer.Temporary, name))))
		}
	}
	return err
}

// occupied is a file below a folder that counts as an output; empty: there is none. Empty folders do not count.
func (l Leave) occupied(ctx context.Context, dir string, depth int) (string, error) {
	if depth > transfer.Deepest {
		return dir, nil
	}
	entries, err := l.Store.List(ctx, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		base := path.Base(e.Path)
		switch {
		case base == transfer.Temporary, depth == 0 && l.saved(base):
		case !e.Dir:
			return e.Path, nil
		default:
			if held, err := l.occupied(ctx, e.Path, depth+1); held != "" || err != nil {
				return held, err
			}
		}
	}
	return "", nil
}

// saved recognises the folders of interim saves by their names in Out.
func (l Leave) saved(base string) bool {
	head, _, nested := strings.Cut(l.saves(), "/")
	return nested && base == head || !nested && strings.HasPrefix(base, head)
}

// names are the names in a folder; none if the folder does not exist.
func (l Leave) names(ctx context.Context, dir string) ([]string, error) {
	entries, err := l.Store.List(ctx, dir)
	var names []string
	for _, e := range entries {
		names = append(names, path.Base(e.Path))
	}
	return names, absent(err)
}

func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Clear removes incomplete copies of this agent or an earlier one. A complete copy stays until there is a newer one.
func (l Leave) Clear(ctx context.Context) error {
	names, err := l.names(ctx, l.place())
	for _, name := range names {
		if name != wholeName {
			err = errors.Join(err, absent(l.Store.Remove(ctx, path.Join(l.place(), name))))
		}
	}
	return err
}

// Begin makes an empty Half.
func (l Leave) Begin(ctx context.Context) error {
	return errors.Join(absent(l.Store.Remove(ctx, l.Half())), l.Store.MkdirAll(ctx, l.Half()))
}

// Seal marks Half as complete. It replaces the copy of an earlier attempt.
func (l Leave) Seal(ctx context.Context) error {
	if err := l.discard(ctx); err != nil {
		return err
	}
	return l.Store.Rename(ctx, l.Half(), l.whole())
}

// discard removes the complete copy: its name first, since a copy that is removed in part is not complete.
func (l Leave) discard(ctx context.Context) error {
	old := path.Join(l.place(), halfName+"old")
	err := absent(l.Store.Remove(ctx, old))
	if err == nil {
		err = l.Store.Rename(ctx, l.whole(), old)
	}
	if err == nil {
		err = l.Store.Remove(ctx, old)
	}
	return absent(err)
}

// Owe marks that the outputs could not be copied after the verdict: other agents leave the folder as it is.
func (l Leave) Owe(ctx context.Context) error { return l.touch(ctx, path.Join(l.place(), owedName)) }

func (l Leave) touch(ctx context.Context, name string) error {
	w, err := l.Store.Create(ctx, name)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return w.Close()
}

// Left is the amount that was left.
type Left struct {
	Files   int
	Bytes   int64
	Skipped []string // neither files nor folders: pipes, sockets
}

// Upload copies the content of a folder and seals it. A link is followed if it stays in the folder; a link that leads
// out is an error. An empty folder leaves no output.
func (l Leave) Upload(ctx context.Context, from store.Folder, how transfer.Transfer) (Left, error) {
	t := tree{root: from}
	err := t.read(ctx, ".", 0)
	left := t.left()
	switch {
	case err != nil:
	case len(t.files)+len(t.dirs) == 0:
		err = l.discard(ctx)
	default:
		if err = l.Begin(ctx); err == nil {
			err = l.copy(ctx, t, how)
		}
		if err == nil {
			err = l.Seal(ctx)
		}
	}
	if err != nil { // cancelled or not, the incomplete copy goes
		if told, ok := errors.AsType[*store.Error](err); ok {
			err = told // it names the file and the remedy
		}
		err = fmt.Errorf("leave %s: %w", from.Name(), transfer.Explain(err, l.Out))
		return Left{}, errors.Join(err, absent(l.Store.Remove(context.WithoutCancel(ctx), l.Half())))
	}
	return left, nil
}

func (l Leave) copy(ctx context.Context, t tree, how transfer.Transfer) error {
	uploads, err := t.uploads(ctx, l.Store, l.Half())
	if err != nil {
		return err
	}
	return how.Send(ctx, l.Store, uploads)
}
