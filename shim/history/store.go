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
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/samples"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/file"
)

// Store is a folder of ended runs. Its methods may be called from any goroutine.
type Store struct {
	URL string

	stores store.Set
	in     store.Store // nil: it is not open yet
	top    string

	here *below // on this host; nil: elsewhere

	large sync.Mutex // held while a large file is read: others may have put many there

	mu   sync.Mutex
	runs map[string]seen // run.json as it was read last, by the run's path
	list listing
	kept map[string]recent // by the run's path
}

// listing is a List, and recent a run, that was read lately. A page asks each second.
type listing struct {
	at      time.Time
	runs    []Run
	entries []Entry
	odd     []error
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
		if scheme := store.SchemeOf(s.URL); err == nil && (scheme == "" || scheme == "file:") {
			s.here = &below{name: s.top}
			s.in = file.New(s.here)
		}
	}
	if err == nil && s.here != nil {
		if err = s.here.reopen(); errors.Is(err, fs.ErrNotExist) {
			err = nil // who writes makes it, and who reads finds nothing
		}
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

// oddities are what a store has that it should not have. Each is left out, and named.
type oddities struct {
	mu  sync.Mutex
	all []error
}

// leave takes an error that concerns one file or run alone. Another one is returned: that of a store that is away. What
// may not be read belongs to others, and what is not there is being written, or removed: neither is odd.
func (o *oddities) leave(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || errors.Is(err, store.ErrUnreachable) {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) {
		o.all = append(o.all, err)
	}
	return nil
}

// folders are those in one; none where it is not there.
func (s *Store) folders(ctx context.Context, at string, odd *oddities) ([]store.Info, error) {
	infos, err := s.in.List(ctx, at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return slices.DeleteFunc(infos, func(i store.Info) bool {
		named := appdef.ValidName(path.Base(i.Path))
		if named && !i.Dir && s.here != nil {
			_ = odd.leave(ctx, s.here.odd(i.Path)) // it takes all
		}
		return !named || !i.Dir
	}), err
}

// entries are the runs of an app, or of all: "".
func (s *Store) entries(ctx context.Context, app string, odd *oddities) ([]Entry, error) {
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	names := []string{app}
	if app == "" {
		apps, err := s.folders(ctx, s.top, odd)
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
		runs, err := s.folders(ctx, s.path(names[i]), odd)
		for _, r := range runs {
			found[i] = append(found[i], Entry{App: names[i], Run: path.Base(r.Path), Changed: r.ModTime})
		}
		if app != "" {
			return err
		}
		return odd.leave(ctx, err)
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

// mostOwn is how long a file of one instance may be, in bytes: an agent's state has 512 KiB at most.
const mostOwn = 1 << 20

// mostAtOnce is from which size on files are read, and made sense of, one after the other, in bytes.
const mostAtOnce = 1 << 20

// read hands the text of a file to use, which keeps none of it.
func (s *Store) read(ctx context.Context, file string, most int, use func(text []byte) error) (err error) {
	content, err := s.in.Open(ctx, file, store.Position{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	text, err := io.ReadAll(io.LimitReader(content, mostAtOnce+1))
	if err == nil && len(text) > mostAtOnce {
		s.large.Lock()
		defer s.large.Unlock()
		var rest []byte
		rest, err = io.ReadAll(io.LimitReader(content, int64(max(0, most+1-len(text)))))
		text = append(text, rest...)
	}
	switch {
	case err != nil:
		return err
	case len(text) > most:
		return fmt.Errorf("%s: got more than %d bytes, want a file of muster's", file, most)
	}
	return use(text)
}

func (s *Store) readJSON(ctx context.Context, file string, most int, into any) error {
	return s.read(ctx, file, most, func(text []byte) error {
		if err := json.Unmarshal(text, into); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		return nil
	})
}

// List are the runs of this store, each with its folder. Of a run without run.json its folder and its instances tell.
// What is no run's folder is left out, and what cannot be read as well: odd says why. A run.json is read again only
// where it has changed.
func (s *Store) List(ctx context.Context) (runs []Run, of []Entry, odd []error, err error) {
	s.mu.Lock()
	last := s.list
	s.mu.Unlock()
	if time.Since(last.at) >= fresh {
		if last, err = s.look(ctx); err != nil {
			return nil, nil, nil, err
		}
		s.mu.Lock()
		s.list = last
		s.mu.Unlock()
	}
	return slices.Clone(last.runs), slices.Clone(last.entries), slices.Clone(last.odd), nil
}

func (s *Store) look(ctx context.Context) (found listing, err error) {
	var odd oddities
	entries, err := s.entries(ctx, "", &odd)
	if err != nil {
		return found, err
	}
	all, err := s.summaries(ctx, entries, &odd)
	if err != nil {
		return found, err
	}
	there := map[string]bool{}
	for i, r := range all {
		if r.Version > 0 {
			found.runs, found.entries = append(found.runs, r), append(found.entries, entries[i])
			there[entries[i].path()] = true
		}
	}
	found.at, found.odd = time.Now(), odd.all
	slices.SortFunc(found.odd, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.runs, func(path string, _ seen) bool { return !there[path] })
	return found, nil
}

// Runs are the runs of an app, each as its run.json tells, in no order. What cannot be read is left out; List says why.
func (s *Store) Runs(ctx context.Context, app string) ([]Run, error) {
	var odd oddities
	entries, err := s.entries(ctx, app, &odd)
	if err != nil {
		return nil, err
	}
	runs, err := s.summaries(ctx, entries, &odd)
	return slices.DeleteFunc(runs, func(r Run) bool { return r.Version == 0 }), err
}

// summaries are the runs of entries; what is no run has no version.
func (s *Store) summaries(ctx context.Context, of []Entry, odd *oddities) ([]Run, error) {
	all := make([]Run, len(of))
	err := each(len(of), func(i int) (err error) {
		all[i], err = s.summaryOf(ctx, of[i])
		return odd.leave(ctx, err)
	})
	return all, s.explain(err)
}

func (s *Store) summaryOf(ctx context.Context, e Entry) (Run, error) {
	file := s.path(e.path(), runFile)
	info, err := s.in.Stat(ctx, file)
	if errors.Is(err, fs.ErrNotExist) {
		return s.bare(ctx, e)
	}
	if err != nil {
		return Run{}, err
	}
	s.mu.Lock()
	known, ok := s.runs[e.path()]
	s.mu.Unlock()
	if ok && known.file == info {
		return known.run, nil
	}
	var r summary
	if err := s.readJSON(ctx, info.Path, mostFile, &r); err != nil || r.App != e.App || r.Run.Run != e.Run {
		return Run{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[e.path()] = seen{info, r.Run}
	return r.Run, nil
}

// summary is a run.json without its members: of a listing only the run counts.
type summary struct {
	Run
	Members ignored `json:"members"`
}

// ignored is a value of any size that takes no memory.
type ignored struct{}

// UnmarshalJSON takes all.
func (*ignored) UnmarshalJSON([]byte) error { return nil }

// bare is a run that has no run.json, as its instances show it.
func (s *Store) bare(ctx context.Context, e Entry) (Run, error) {
	k, err := s.load(ctx, e)
	if errors.Is(err, registry.ErrNoApp) {
		return Run{}, nil
	}
	if err != nil {
		return Run{}, err
	}
	return k.Run, errors.Join(k.Odd...)
}

// Kept is all that a store has of a run, but for its logs and events.
type Kept struct {
	Run
	URL    string // of its folder
	Def    appdef.App
	States map[string]State
	Exits  map[string]status.ExitFile
	Odd    []error // why files of it are left out

	store *Store
}

// lastLooked is how many runs of an app are looked at for the last one: their folders' times tell nearly.
const lastLooked = 4

// Load reads a run of an app; "": the last one. The error is registry.ErrNoApp where there is none.
func (s *Store) Load(ctx context.Context, app, run string) (*Kept, error) {
	var odd oddities
	entries, err := s.entries(ctx, app, &odd)
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
	newest, err := s.summaries(ctx, entries[:min(len(entries), lastLooked)], &odd)
	if err != nil {
		return nil, err
	}
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
	var odd oddities
	folders, err := s.folders(ctx, s.path(e.path()), &odd)
	if err != nil {
		return nil, s.explain(err)
	}
	run := k.Run
	if err = s.readJSON(ctx, s.path(e.path(), runFile), mostFile, &run); err == nil {
		k.Run = run
	}
	undefined := s.read(ctx, s.path(e.path(), appFile), mostFile, func(text []byte) (err error) {
		k.Def, err = appdef.Unmarshal(text)
		return err
	})
	for _, err := range []error{err, undefined} {
		if err = odd.leave(ctx, err); err != nil {
			return nil, s.explain(err)
		}
	}
	if err := s.loadInstances(ctx, k, folders, &odd); err != nil {
		return nil, s.explain(err)
	}
	k.Odd = odd.all
	if k.Run.Run != e.Run || k.App != e.App || k.Version == 0 {
		return nil, noRun{e.App, e.Run, s.URL}
	}
	return k, nil
}

func (s *Store) loadInstances(ctx context.Context, k *Kept, folders []store.Info, odd *oddities) error {
	var mu sync.Mutex
	err := each(len(folders), func(i int) error {
		name := path.Base(folders[i].Path)
		if _, err := registry.ParseInstance(name); err != nil {
			return nil //nolint:nilerr // a folder of somebody else's
		}
		var st State
		var x status.ExitFile
		err := s.readJSON(ctx, k.file(name, stateFile), mostOwn, &st)
		if errors.Is(err, fs.ErrNotExist) || err == nil && (st.App != k.App || st.State.Run != k.Run.Run) {
			return nil
		}
		if err != nil {
			return odd.leave(ctx, err)
		}
		err = s.readJSON(ctx, k.file(name, exitFile), mostOwn, &x)
		mu.Lock()
		defer mu.Unlock()
		k.States[name] = st
		if err == nil {
			k.Exits[name] = x
		}
		return odd.leave(ctx, err)
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

// mostSamples is how much of an instance's samples is read, in bytes, and mostPoints how many of all instances are
// given: an agent keeps 2,000, and those of a run of more than 2,000 instances are thinned.
const (
	mostSamples = 2 << 20
	mostPoints  = 4 << 20
)

// Samples are what the instances used, of those that have left some that can be read, as Table.After has it.
func (k *Kept) Samples(ctx context.Context, since int64) ([]samples.Table, error) {
	names := k.Instances()
	found := make([]samples.Table, len(names))
	var odd oddities
	err := each(len(names), func(i int) error {
		t, err := k.samplesOf(ctx, names[i])
		found[i] = t.After(since).Thin(max(1, mostPoints/len(names)))
		return odd.leave(ctx, err)
	})
	return slices.DeleteFunc(found, func(t samples.Table) bool { return t.Version == 0 }), k.store.explain(err)
}

func (k *Kept) samplesOf(ctx context.Context, instance string) (t samples.Table, err error) {
	content, err := k.store.in.Open(ctx, k.file(instance, useFile), store.Position{})
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	z, err := gzip.NewReader(content)
	if err == nil {
		err = json.NewDecoder(io.LimitReader(z, mostSamples)).Decode(&t)
	}
	if err != nil {
		return samples.Table{}, fmt.Errorf("%s: %w", k.file(instance, useFile), err)
	}
	t.Instance = instance
	return t, nil
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
		_, err = io.Copy(to, io.LimitReader(z, mostLog+mostNote)) // of another's making it may have no end
	}
	return k.store.explain(errors.Join(err, content.Close()))
}
