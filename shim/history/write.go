package history

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/journal"
	"github.com/muster-agent/muster/shim/logtimes"
	"github.com/muster-agent/muster/shim/samples"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/tail"
)

// Writer puts one run into a store.
type Writer struct {
	s *Store
	e Entry
}

// Writer makes the folder of an app, which its user alone may read, or the store's group as well.
func (s *Store) Writer(ctx context.Context, app, run string, group bool) (*Writer, error) {
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	mode := fs.FileMode(0o700)
	if group {
		mode = 0o750
	}
	take := s.take
	if s.here != nil {
		take = s.takeHere
	}
	if err := take(ctx, app, mode); err != nil {
		return nil, s.explain(err)
	}
	return &Writer{s, Entry{App: app, Run: run}}, nil
}

// owned is a store whose folders have owners and modes.
type owned interface {
	store.Guarded
	User() string
	Chmod(ctx context.Context, name string, mode fs.FileMode, below bool) error
}

func (s *Store) take(ctx context.Context, app string, mode fs.FileMode) error {
	dir := s.path(app)
	in, ok := s.in.(owned)
	if !ok {
		return fmt.Errorf("%w here", errors.ErrUnsupported)
	}
	_, missing := s.in.Stat(ctx, dir)
	if err := s.in.MkdirAll(ctx, dir); err != nil {
		return err
	}
	a, err := in.Access(ctx, dir)
	if err == nil && a.Owner != in.User() {
		err = notOurs(app, a.Owner, in.User())
	}
	if err != nil || !errors.Is(missing, fs.ErrNotExist) { // one that was there has the mode that somebody gave it
		return err
	}
	return in.Chmod(ctx, dir, mode, false)
}

func notOurs(app, owner, user any) error {
	return fmt.Errorf("folder %s belongs to %v, not to %v: give the app another name with --app-id", app, owner, user)
}

// takeHere makes the folder of an app in one of this host.
func (s *Store) takeHere(_ context.Context, app string, mode fs.FileMode) error {
	if err := os.MkdirAll(s.top, 0o700); err != nil {
		return err
	}
	if err := s.here.reopen(); err != nil {
		return err
	}
	root := s.here.root.Load()
	made := root.Mkdir(app, mode)
	if errors.Is(made, fs.ErrPermission) {
		return fmt.Errorf("%w: a store that several users share has mode 1777 (chmod 1777 %s)", made, s.top)
	}
	if made != nil && !errors.Is(made, fs.ErrExist) {
		return made
	}
	info, err := root.Lstat(app)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is a %s, want a folder: remove it", app, store.KindOf(info.Mode()))
	case !ok || int(st.Uid) != os.Geteuid():
		return notOurs(app, fmt.Sprintf("uid %d", st.Uid), fmt.Sprintf("uid %d", os.Geteuid()))
	}
	if made != nil { // as in take
		return nil
	}
	return root.Chmod(app, mode) // whatever the umask is
}

// Close gives back what a Writer has opened.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.here == nil {
		return
	}
	if root := s.here.root.Swap(nil); root != nil {
		_ = root.Close() // each file in it was closed
	}
}

// write makes a file complete or not at all. What breaks is tried again while there is time.
func (w *Writer) write(ctx context.Context, name string, fill func(io.Writer) error) error {
	to := w.s.path(w.e.path(), name)
	for tries := 1; ; tries++ {
		err := w.try(ctx, to, fill)
		if err == nil || !store.Transient(err) || ctx.Err() != nil {
			return err
		}
		if store.DefaultBackoff.Wait(ctx, tries) != nil {
			return err
		}
	}
}

func (w *Writer) try(ctx context.Context, to string, fill func(io.Writer) error) (err error) {
	tmp := path.Join(path.Dir(to), "."+path.Base(to)+tmpMark+rand.Text())
	out, err := w.s.in.Create(ctx, tmp)
	if err != nil {
		return err
	}
	err = errors.Join(fill(out), out.Close())
	if err == nil {
		err = w.s.in.Rename(ctx, tmp, to)
	}
	if err != nil {
		_ = w.s.in.Remove(context.WithoutCancel(ctx), tmp) // the first error says more
	}
	return err
}

func (w *Writer) writeText(ctx context.Context, name string, text []byte) error {
	return w.write(ctx, name, func(out io.Writer) error {
		_, err := out.Write(text)
		return err
	})
}

// Instance is what an instance's agent leaves.
type Instance struct {
	State State
	Exit  status.ExitFile
	Plan  []byte
	// Samples are what it used; none where it ended before there was one.
	Samples samples.Table
	// Since is when the run began: its events and logs are kept, not what an earlier one has left in the folder.
	Since time.Time
	// LogDir is its log folder, Logs the names of the logs in it that are kept.
	LogDir string
	Logs   []string
	Hide   func(string) string // takes secret values out of a text
}

// Put writes an instance's files, its state last: a state says that the others are there. What a later life of the
// instance has left stays.
func (w *Writer) Put(ctx context.Context, in registry.Instance, one Instance) error {
	name := in.String()
	var there State
	err := w.s.readJSON(ctx, w.s.path(w.e.path(), name, stateFile), mostOwn, &there)
	if err == nil && !one.State.replaces(there) {
		return nil
	}
	put := func(file string, text []byte, err error) error {
		if err != nil {
			return err
		}
		return w.writeText(ctx, path.Join(name, file), append(text, '\n'))
	}
	hidden := func(value any) ([]byte, error) {
		text, err := json.MarshalIndent(value, "", "  ")
		return []byte(one.Hide(string(text))), err
	}
	errs := []error{put(planFile, []byte(one.Hide(string(one.Plan))), nil)}
	errs = append(errs, w.copyEvents(ctx, name, one.LogDir, one.Since))
	for _, log := range one.Logs {
		errs = append(errs, w.copyLog(ctx, name, log, filepath.Join(one.LogDir, log+".log"), one.Since))
	}
	if len(one.Samples.At) > 0 {
		errs = append(errs, w.write(ctx, path.Join(name, useFile), func(out io.Writer) error {
			z := gzip.NewWriter(out)
			return errors.Join(json.NewEncoder(z).Encode(one.Samples), z.Close())
		}))
	}
	text, err := hidden(one.Exit)
	errs = append(errs, put(exitFile, text, err))
	text, err = hidden(one.State)
	errs = append(errs, put(stateFile, text, err))
	return errors.Join(errs...)
}

func (w *Writer) copyEvents(ctx context.Context, instance, dir string, since time.Time) error {
	from, err := files.OpenPlain(filepath.Join(dir, eventsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	err = w.write(ctx, path.Join(instance, eventsFile), func(out io.Writer) error {
		if _, err := from.Seek(0, io.SeekStart); err != nil {
			return err
		}
		return eventsSince(out, store.Reader(ctx, io.LimitReader(from, mostFile)), since)
	})
	return errors.Join(err, from.Close())
}

// eventsSince copies the lines from the first one on that is not before a time.
func eventsSince(to io.Writer, from io.Reader, since time.Time) error {
	lines := bufio.NewReader(from)
	for {
		text, err := lines.ReadBytes('\n')
		var line journal.Line
		if json.Unmarshal(text, &line) == nil && !line.At.Before(since.Truncate(time.Millisecond)) {
			if _, err := to.Write(text); err != nil {
				return err
			}
			_, err = io.Copy(to, lines)
			return err
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// mostLog is how much of a log is kept, in bytes before it is compressed: its end.
const mostLog = 64 << 20

// mostNote is how long the note may be that says what was not kept.
const mostNote = 256

// copyLog keeps what was written to a log since a time, its rotated files first.
func (w *Writer) copyLog(ctx context.Context, instance, name, from string, since time.Time) error {
	var parts []string
	size, earlier := int64(0), int64(0) // bytes, and how many of them an earlier run wrote
	for part := range tail.Parts(from, -1) {
		info, err := os.Lstat(part)
		if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
			continue
		}
		before := min(logtimes.Read(from, info).Since(since), info.Size())
		if before == info.Size() {
			continue // an earlier run's
		}
		parts, size, earlier = append(parts, part), size+info.Size(), earlier+before
	}
	size -= earlier
	return w.write(ctx, path.Join(instance, name+logEnding), func(out io.Writer) error {
		z := gzip.NewWriter(out)
		skip := max(0, size-mostLog)
		if skip > 0 {
			if _, err := fmt.Fprintf(z, "muster: the first %d bytes of this log were not kept\n", skip); err != nil {
				return err
			}
		}
		skip += earlier
		left := min(size, mostLog)
		for _, part := range parts {
			n, err := copyPart(ctx, z, part, skip, left)
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // it was rotated away
				return err
			}
			skip, left = max(0, skip-files.PlainSize(part)), left-n
		}
		return z.Close()
	})
}

// copyPart copies a file from a byte on, at most so many bytes.
func copyPart(ctx context.Context, to io.Writer, part string, skip, most int64) (n int64, err error) {
	from, err := files.OpenPlain(part)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if _, err := from.Seek(skip, io.SeekStart); err != nil {
		return 0, err
	}
	return io.Copy(to, store.Reader(ctx, io.LimitReader(from, most)))
}

// Conclude writes the files of the run: its definition, and what the registry knew of it at its end.
func (w *Writer) Conclude(ctx context.Context, r Run, definition []byte, hide func(string) string) error {
	var there Run
	err := w.s.readJSON(ctx, w.s.path(w.e.path(), runFile), mostFile, &there)
	if err == nil && !r.replaces(there) {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(w.writeText(ctx, appFile, []byte(hide(string(definition)))),
		w.writeText(ctx, runFile, []byte(hide(string(text))+"\n")))
}
