package history

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/store"
)

// Store is a folder of ended runs. Its methods may be called from any goroutine.
type Store struct {
	URL string

	stores store.Set
	in     store.Store // nil: it is not open yet
	top    string

	mu   sync.Mutex
	root *os.Root        // of a writer on this host; nil: none
	runs map[string]seen // run.json as it was read last, by the run's path
	list listing
	kept map[string]recent // by the run's path
}

// listing is a List, and recent a run, that was read lately. A page asks each second.
type listing struct {
	at      time.Time
	runs    []Run
	entries []Entry
}

type recent struct {
	at   time.Time
	kept *Kept
}

// fresh is for how long they are not read again, mostRecent how many runs.
const (
	fresh      = 10 * time.Second
	mostRecent = 64
)

// seen is a file that was read, and what tells whether it is still the same.
type seen struct {
	file store.Info
	run  Run
}

// noRun is a run of an app, or with "" an app, that a store does not have.
type noRun struct{ app, run, url string }

func (e noRun) Error() string {
	what := fmt.Sprintf("app %q", e.app)
	if e.run != "" {
		what = fmt.Sprintf("run %q of %s", e.run, e.app)
	}
	return fmt.Sprintf("no %s in the history store %s; muster ps --history %[2]s lists what is there", what, e.url)
}

func (noRun) Unwrap() error { return registry.ErrNoApp }

// New is the store at a URL. It is opened when it is first used.
func New(url string, in store.Set) *Store {
	return &Store{
		URL: strings.TrimRight(url, "/"), stores: in, runs: map[string]seen{}, kept: map[string]recent{},
	}
}

func (s *Store) open(ctx context.Context) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.in == nil {
		s.in, s.top, err = s.stores.Open(ctx, s.URL)
	}
	return s.explain(err)
}

func (s *Store) path(names ...string) string { return path.Join(append([]string{s.top}, names...)...) }

// atOnce is how many files are read at the same time.
const atOnce = 16

// each calls do for each of n things, some at once, and joins the errors.
func each(n int, do func(i int) error) error {
	errs := make([]error, n)
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			errs[i] = do(i)
			<-slots
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// folders are the names of the folders in one; none where it is not there.
func (s *Store) folders(ctx context.Context, at string) ([]store.Info, error) {
	infos, err := s.in.List(ctx, at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return slices.DeleteFunc(infos, func(i store.Info) bool {
		return !i.Dir || !appdef.ValidName(path.Base(i.Path))
	}), err
}

// Entries are the runs of an app, or of all: "". What may not be read there belongs to others, and is left out.
func (s *Store) Entries(ctx context.Context, app string) ([]Entry, error) {
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	names := []string{app}
	if app == "" {
		apps, err := s.folders(ctx, s.top)
		if err != nil {
			return nil, s.explain(err)
		}
		names = nil
		for _, a := range apps {
			names = append(names, path.Base(a.Path))
		}
	}
	found := make([][]Entry, len(names))
	err := each(len(names), func(i int) error {
		runs, err := s.folders(ctx, s.path(names[i]))
		for _, r := range runs {
			found[i] = append(found[i], Entry{App: names[i], Run: path.Base(r.Path), Changed: r.ModTime})
		}
		if errors.Is(err, fs.ErrPermission) && app == "" {
			return nil
		}
		return err
	})
	return slices.Concat(found...), s.explain(err)
}

func (s *Store) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("history store %s: %w", s.URL, err)
}

// mostFile is how long a file of a run may be, in bytes: a run.json of 10,000 members has some 10 MB.
const mostFile = 64 << 20

func (s *Store) read(ctx context.Context, file string) (text []byte, err error) {
	content, err := s.in.Open(ctx, file, store.Position{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	text, err = io.ReadAll(io.LimitReader(content, mostFile+1))
	if err == nil && len(text) > mostFile {
		err = fmt.Errorf("%s: got more than %d bytes, want a file of muster's", file, mostFile)
	}
	return text, err
}

func (s *Store) readJSON(ctx context.Context, file string, into any) error {
	text, err := s.read(ctx, file)
	if err == nil {
		if err = json.Unmarshal(text, into); err != nil {
			err = fmt.Errorf("%s: %w", file, err)
		}
	}
	return err
}

// List are the runs of this store, each with its folder. Of a run without run.json its folder and its instances tell.
// What is no run's folder is left out. A run.json is read again only where it has changed.
func (s *Store) List(ctx context.Context) (runs []Run, of []Entry, err error) {
	s.mu.Lock()
	last := s.list
	s.mu.Unlock()
	if time.Since(last.at) < fresh {
		return slices.Clone(last.runs), slices.Clone(last.entries), nil
	}
	entries, err := s.Entries(ctx, "")
	if err != nil {
		return nil, nil, err
	}
	all := s.summaries(ctx, entries)
	for i, r := range all {
		if r.Version > 0 {
			runs, of = append(runs, r), append(of, entries[i])
		}
	}
	s.mu.Lock()
	s.list = listing{time.Now(), runs, of}
	s.mu.Unlock()
	return slices.Clone(runs), slices.Clone(of), nil
}

// summaries are the runs of entries; what is no run has no version.
func (s *Store) summaries(ctx context.Context, of []Entry) []Run {
	all := make([]Run, len(of))
	_ = each(len(of), func(i int) error { // what cannot be read tells nothing
		all[i] = s.summary(ctx, of[i])
		return nil
	})
	return all
}

func (s *Store) summary(ctx context.Context, e Entry) Run {
	file := s.path(e.path(), runFile)
	info, err := s.in.Stat(ctx, file)
	if err != nil {
		return s.bare(ctx, e)
	}
	s.mu.Lock()
	known, ok := s.runs[e.path()]
	s.mu.Unlock()
	if ok && known.file == info {
		return known.run
	}
	var r Run
	if err := s.readJSON(ctx, file, &r); err != nil || r.App != e.App || r.Run != e.Run {
		return Run{}
	}
	r.Members = nil // of a listing only the run counts
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[e.path()] = seen{info, r}
	return r
}

// bare is a run that has no run.json, as its instances show it.
func (s *Store) bare(ctx context.Context, e Entry) Run {
	k, err := s.load(ctx, e)
	if err != nil {
		return Run{}
	}
	return k.Run
}

// Kept is all that a store has of a run, but for its logs and events.
type Kept struct {
	Run
	URL    string // of its folder
	Def    appdef.App
	States map[string]State
	Exits  map[string]status.ExitFile

	store *Store
}

// lastLooked is how many runs of an app are looked at for the last one: their folders' times tell nearly.
const lastLooked = 4

// Load reads a run of an app; "": the last one. The error is registry.ErrNoApp where there is none.
func (s *Store) Load(ctx context.Context, app, run string) (*Kept, error) {
	entries, err := s.Entries(ctx, app)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b Entry) int { return b.Changed.Compare(a.Changed) })
	if run != "" {
		entries = slices.DeleteFunc(entries, func(e Entry) bool { return e.Run != run })
	}
	if len(entries) == 0 {
		return nil, noRun{app, run, s.URL}
	}
	newest := s.summaries(ctx, entries[:min(len(entries), lastLooked)])
	last := slices.MaxFunc(newest, func(a, b Run) int { return a.Started.Compare(b.Started) })
	return s.loadRecent(ctx, Entry{App: app, Run: cmp.Or(last.Run, entries[0].Run)})
}

// loadRecent loads a run unless it was loaded just now.
func (s *Store) loadRecent(ctx context.Context, e Entry) (*Kept, error) {
	s.mu.Lock()
	last := s.kept[e.path()]
	s.mu.Unlock()
	if time.Since(last.at) < fresh {
		return last.kept, nil
	}
	k, err := s.load(ctx, e)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kept) >= mostRecent {
		clear(s.kept)
	}
	s.kept[e.path()] = recent{time.Now(), k}
	return k, nil
}

func (s *Store) load(ctx context.Context, e Entry) (*Kept, error) {
	k := &Kept{
		Run: Run{App: e.App, Run: e.Run, Started: e.Changed, Ended: e.Changed, Outcome: "interrupted"},
		URL: s.URL + "/" + e.path(), store: s, States: map[string]State{}, Exits: map[string]status.ExitFile{},
	}
	folders, err := s.folders(ctx, s.path(e.path()))
	if err == nil {
		err = s.readJSON(ctx, s.path(e.path(), runFile), &k.Run)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, s.explain(err)
	}
	if text, err := s.read(ctx, s.path(e.path(), appFile)); err == nil {
		k.Def, _ = decode(text) // of one that cannot be read nothing is known
	}
	if err := s.loadInstances(ctx, k, folders); err != nil {
		return nil, s.explain(err)
	}
	if k.Run.Run != e.Run || k.App != e.App || k.Version == 0 {
		return nil, noRun{e.App, e.Run, s.URL}
	}
	return k, nil
}

func (s *Store) loadInstances(ctx context.Context, k *Kept, folders []store.Info) error {
	var mu sync.Mutex
	err := each(len(folders), func(i int) error {
		name := path.Base(folders[i].Path)
		if _, err := registry.ParseInstance(name); err != nil {
			return nil //nolint:nilerr // a folder of somebody else's
		}
		var st State
		var x status.ExitFile
		err := s.readJSON(ctx, k.file(name, stateFile), &st)
		if errors.Is(err, fs.ErrNotExist) || err == nil && (st.App != k.App || st.State.Run != k.Run.Run) {
			return nil
		}
		exitErr := s.readJSON(ctx, k.file(name, exitFile), &x)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			k.States[name] = st
		}
		if exitErr == nil {
			k.Exits[name] = x
		}
		return errors.Join(err, exitErr)
	})
	k.complete()
	return err
}

// complete fills in what a run without run.json has in the files of its instances.
func (k *Kept) complete() {
	for _, x := range k.Exits {
		if v := x.Verdict; k.Verdict == nil && v != nil && v.Run == k.Run.Run {
			k.Verdict, k.Outcome = v, string(v.Outcome)
		}
	}
	if k.Name == "" {
		k.Name = k.Def.Name
	}
	if len(k.States) > 0 {
		k.Version = 1
	}
}

// Instances are those that have left something, in the order of their names.
func (k *Kept) Instances() []string { return slices.Sorted(maps.Keys(k.States)) }

// Events copies the events of an instance from a byte on.
func (k *Kept) Events(ctx context.Context, instance string, offset int64, to io.Writer) error {
	content, err := k.store.in.Open(ctx, k.file(instance, eventsFile), store.Position{Offset: offset})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return k.store.explain(err)
	}
	_, err = io.CopyN(io.Discard, content, offset-content.Offset)
	if err == nil {
		_, err = io.Copy(to, content)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, content.Close())
}

func (k *Kept) file(instance, name string) string {
	return k.store.path(k.App, k.Run.Run, instance, name)
}

// Logged tells whether the logs of an instance were kept.
func (k *Kept) Logged(ctx context.Context, instance string) bool {
	_, err := k.store.in.Stat(ctx, k.file(instance, "agent"+logEnding))
	return err == nil
}

// Log copies a log of an instance: stdout, stderr or agent. The error is fs.ErrNotExist where it was not kept.
func (k *Kept) Log(ctx context.Context, instance, name string, to io.Writer) error {
	content, err := k.store.in.Open(ctx, k.file(instance, name+logEnding), store.Position{})
	if err != nil {
		return k.store.explain(err)
	}
	z, err := gzip.NewReader(content)
	if err == nil {
		_, err = io.Copy(to, z) //nolint:gosec // it goes where logs of any length go
	}
	return k.store.explain(errors.Join(err, content.Close()))
}
