package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/muster-agent/muster/packages/fetch"
)

// Leave is a folder of a process that is to be left in a store, whole or not at all:
//
//	<Out>/_temporary/<Owner>/<Folder>/…   while it is copied
//	<Out>/<Folder>/…                      then, by one rename
//	<Out>/_muster/<Folder>                whose it is: Owner
type Leave struct {
	Store  Store
	Out    string // path in the store
	Folder string // the name that it gets there
	Owner  string // the app and the run, in one word: what the same ones left before is replaced
}

// TakenError is an output that is there already and not from the same run.
type TakenError struct{ Path string }

func (e *TakenError) Error() string {
	return fmt.Sprintf("output %s: it is there already, and not from this run; remove it, or name another place", e.Path)
}

func (l Leave) final() string { return path.Join(l.Out, l.Folder) }
func (l Leave) half() string  { return path.Join(l.Out, temporary, l.Owner, l.Folder) }
func (l Leave) mark() string  { return path.Join(l.Out, marks, l.Folder) }

// Prepare makes room for what will be left. What keeps it from being left shows here, before the work is done: an output
// of somebody else (*TakenError), or a place that may not be written.
func (l Leave) Prepare(ctx context.Context) error {
	_, err := l.Store.Stat(ctx, l.final())
	if err == nil {
		var owner string
		if owner, err = l.owner(ctx); err == nil && owner != l.Owner {
			return &TakenError{l.final()}
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("output %s: %w", l.final(), err)
	}
	if err := errors.Join(l.clear(ctx), l.Store.MkdirAll(ctx, l.half())); err != nil {
		return fmt.Errorf("output %s: %w", l.final(), err)
	}
	return nil
}

// owner is whose the folder is; empty: it does not say.
func (l Leave) owner(ctx context.Context) (string, error) {
	content, err := l.Store.Open(ctx, l.mark(), fetch.Position{})
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	const most = 4096 // an app id and a run id
	text, err := io.ReadAll(io.LimitReader(content, most))
	return strings.TrimSpace(string(text)), errors.Join(err, content.Close())
}

// clear takes away what a predecessor that was killed left half.
func (l Leave) clear(ctx context.Context) error { return absent(l.Store.Remove(ctx, l.half())) }

func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Abandon gives up the room that Prepare made.
func (l Leave) Abandon(ctx context.Context) error {
	return errors.Join(l.clear(ctx), l.tidy(ctx))
}

// tidy takes away the folders for what is half there, once nobody else has something in them.
func (l Leave) tidy(ctx context.Context) error {
	return errors.Join(l.Store.Prune(ctx, path.Dir(l.half())), l.Store.Prune(ctx, path.Join(l.Out, temporary)))
}

// Left is what was left.
type Left struct {
	Files   int
	Bytes   int64
	Skipped []string // neither files nor folders: pipes, sockets
}

// Run copies the content of a folder. Links are followed where they stay in it; one that leads out
// is an error. Of an empty folder nothing is left.
func (l Leave) Run(ctx context.Context, from *os.Root, how Transfer) (Left, error) {
	t := tree{root: from}
	err := t.read(".", 0)
	if err == nil && len(t.files)+len(t.dirs) == 0 {
		return Left{Skipped: t.odd}, l.Abandon(ctx)
	}
	if err == nil {
		err = l.copy(ctx, t, how)
	}
	if err == nil {
		err = l.reveal(ctx)
	}
	if err != nil { // called off or not, what is half there goes
		err = fmt.Errorf("leave %s as %s: %w", from.Name(), l.final(), explain(err, l.Out))
		return Left{}, errors.Join(err, l.Abandon(context.WithoutCancel(ctx)))
	}
	left := Left{Files: len(t.files), Skipped: t.odd}
	for _, f := range t.files {
		left.Bytes += f.size
	}
	return left, nil
}

func (l Leave) copy(ctx context.Context, t tree, how Transfer) error {
	for _, dir := range append([]string{"."}, t.dirs...) {
		if err := l.Store.MkdirAll(ctx, path.Join(l.half(), dir)); err != nil {
			return err
		}
	}
	parcels := make([]Parcel, len(t.files))
	for i, e := range t.files {
		parcels[i] = Parcel{From: t.root, Name: e.name, To: path.Join(l.half(), e.name)}
	}
	return how.Send(ctx, l.Store, parcels)
}

// reveal gives the whole folder its name. Whose it will be is written first: a crash in between leaves a word about nothing.
func (l Leave) reveal(ctx context.Context) error {
	if err := absent(l.Store.Remove(ctx, l.mark())); err != nil {
		return err
	}
	w, err := l.Store.Create(ctx, l.mark())
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, l.Owner+"\n")
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	if err := absent(l.Store.Remove(ctx, l.final())); err != nil {
		return err
	}
	if err := l.Store.Rename(ctx, l.half(), l.final()); err != nil {
		return err
	}
	return l.tidy(ctx)
}

// tree is what a local folder holds.
type tree struct {
	root  *os.Root
	dirs  []string
	files []entry
	odd   []string
}

// entry is a file by its path in the folder.
type entry struct {
	name string
	size int64 // bytes
}

func (t *tree) read(dir string, depth int) error {
	if depth > deepest {
		return fmt.Errorf("%s: got more than %d folders in each other, want no link that leads back", dir, deepest)
	}
	d, err := t.root.Open(dir)
	if err != nil {
		return err
	}
	names, err := d.Readdirnames(-1)
	if err = errors.Join(err, d.Close()); err != nil {
		return err
	}
	for _, base := range names {
		if err := t.add(path.Join(dir, base), depth); err != nil {
			return err
		}
	}
	return nil
}

func (t *tree) add(name string, depth int) error {
	info, err := t.root.Stat(name)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		t.dirs = append(t.dirs, name)
		return t.read(name, depth+1)
	case info.Mode().IsRegular():
		t.files = append(t.files, entry{name, info.Size()})
	default:
		t.odd = append(t.odd, name)
	}
	return nil
}
