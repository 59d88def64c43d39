package data

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/store"
)

// Leave is a folder of a process that is to be left in a store, whole or not at all, and only when the job's verdict is
// there:
//
//	<Out>/_temporary/<Run>/<Folder>/               the instance's place: it stands until its outputs are settled
//	<Out>/_temporary/<Run>/<Folder>/half-<Turn>/…  while it is copied
//	<Out>/_temporary/<Run>/<Folder>/whole/…        then, by one rename, until the verdict
//	<Out>/<Folder>/…                               then, by one rename
//	<Out>/_SUCCESS                                 when no place of the run is left, after a success
//
// Every step can be done again by whoever comes after an agent that was killed.
type Leave struct {
	Store  store.Store
	Out    string // path in the store
	Folder string // the name that it gets there
	Run    string // APP@RUN: one life of an app
	Turn   string // who copies: no two write to one half
	// Saves is where interim saves lie, below Out, as plan.DefaultSaves; they are no outputs. Empty: there.
	Saves string
}

// TakenError is an output that holds something already, not of this run.
type TakenError struct{ Out, Path string }

func (e *TakenError) Error() string {
	return fmt.Sprintf("output %s: %s is there already; remove it, or name another place", e.Out, e.Path)
}

const (
	wholeName = "whole"
	halfName  = "half-"
	// owedName marks a place whose outputs could not be copied after the verdict: there is no _SUCCESS over it.
	owedName = "owed"
)

func (l Leave) final() string { return path.Join(l.Out, l.Folder) }
func (l Leave) run() string   { return path.Join(l.Out, transfer.Temporary, l.Run) }
func (l Leave) place() string { return path.Join(l.run(), l.Folder) }
func (l Leave) whole() string { return path.Join(l.place(), wholeName) }

// Half is the folder that is written to until it is whole: Begin makes it, Seal ends it.
func (l Leave) Half() string { return path.Join(l.place(), halfName+l.Turn) }

// Prepare makes room for what will be left. What keeps it from being left shows here, before the work is done: an
// output that is there already (*TakenError), or a place that may not be written. The first instance of a run that
// comes looks; the run's folder says to the others, to later generations and to agents that were started again that it
// may.
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
	return fmt.Errorf("output %s: %w", l.Out, err)
}

// Rivals are runs of other apps that have a place for outputs of the same name here: at work, or never ended. Whichever
// ends later finds its name taken. Asked after Prepare, at least one of two that begin at once hears of the other.
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

// admit refuses an output that holds files which are neither another run's unfinished ones nor interim saves. What
// earlier runs of the app left unfinished goes: an app has one run at a time.
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

// occupied is a file below a folder that counts as an output; empty: there is none. Empty folders are nothing.
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

// saved tells the folders of interim saves by their names in Out.
func (l Leave) saved(base string) bool {
	head, _, nested := strings.Cut(l.saves(), "/")
	return nested && base == head || !nested && strings.HasPrefix(base, head)
}

// names are those of what lies directly in a folder; of one that is not there none.
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

// Clear takes away what was copied half, by this agent or one before it. What is whole stays, until something newer is.
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

// Seal says that all is in Half. It takes the place of what a former attempt left.
func (l Leave) Seal(ctx context.Context) error {
	if err := l.discard(ctx); err != nil {
		return err
	}
	return l.Store.Rename(ctx, l.Half(), l.whole())
}

// discard takes away what is whole. It loses that name first: what is removed in part is not whole.
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

// Owe marks that what belongs here could not be copied after the verdict: others leave the place as it is.
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

// Left is what was left.
type Left struct {
	Files   int
	Bytes   int64
	Skipped []string // neither files nor folders: pipes, sockets
}

// Upload copies the content of a folder, to stand whole in its place. Links are followed where they stay in it; one
// that leads out is an error. Of an empty folder nothing is left.
func (l Leave) Upload(ctx context.Context, from *os.Root, how transfer.Transfer) (Left, error) {
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
	if err != nil { // called off or not, what is half there goes
		if told, ok := errors.AsType[*store.Error](err); ok {
			err = told // it names the file and what to do
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
