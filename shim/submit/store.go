package submit

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/muster-agent/muster/packages/fetch"
)

// Store is a folder of files that runs bring along, each once, by its digest:
//
//	objects/SHA256-NAME      a file
//	objects/.going-SHA256-…  somebody may be taking it away
//	runs/APP@RUN.json        a Mark: which files a run uses
//
// A mark is written before its files are looked for, and files are taken away when no mark names them: whoever shares a file
// with a run that ends keeps it.
type Store struct {
	url   string
	in    fetch.Store
	root  string // path in the store
	o     fetch.Options
	local bool   // a folder of this machine, or one that is mounted here
	seen  string // its URL, or path, on the hosts
}

// Object is a file to bring.
type Object struct {
	Name       string // what it is called in the store: its ending tells what it is
	File       string // where it lies here
	Executable bool
}

// Mark says which files a run uses, and where its end can be asked for.
type Mark struct {
	Version  int       `json:"version"`
	App      string    `json:"app"`
	Run      string    `json:"run"`
	Registry string    `json:"registry"`
	Launcher string    `json:"launcher"`
	ID       string    `json:"id,omitempty"` // the launcher's; empty: not started yet
	Objects  []string  `json:"objects"`      // SHA256-NAME
	At       time.Time `json:"at"`
}

// ErrReadOnly is a store that nothing can be put into.
var ErrReadOnly = errors.New("nothing can be put there")

// Open finds the store at a file: or hdfs: URL, or at a path. It need not be there yet.
func Open(ctx context.Context, url string, o fetch.Options) (*Store, error) {
	url = strings.TrimRight(url, "/")
	if lower := strings.ToLower(url); strings.HasPrefix(lower, "http:") || strings.HasPrefix(lower, "https:") {
		return nil, fmt.Errorf("store %s: %w: want hdfs:, or a folder that all hosts see", fetch.Printable(url), ErrReadOnly)
	}
	in, root, err := fetch.Open(ctx, url, o)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	s := &Store{url: url, in: in, root: root, o: o}
	if s.local = !strings.Contains(url, ":") || strings.HasPrefix(strings.ToLower(url), "file:"); s.local {
		s.url = "file://" + root
	}
	s.seen = s.url
	return s, nil
}

// SeenAs says what the store is to the hosts: a web server that shows the folder, or another path.
func (s *Store) SeenAs(url string) {
	s.seen = strings.TrimRight(url, "/")
	if strings.HasPrefix(s.seen, "/") {
		s.seen = "file://" + s.seen
	}
}

// Local tells that the hosts see a folder: files in it have paths there.
func (s *Store) Local() bool { return strings.HasPrefix(strings.ToLower(s.seen), "file:") }

// Web tells that the hosts see a web server.
func (s *Store) Web() bool {
	return strings.HasPrefix(strings.ToLower(s.seen), "http:") || strings.HasPrefix(strings.ToLower(s.seen), "https:")
}

// URL is where the hosts find an object of the store: what an agent is told to load.
func (s *Store) URL(object string) string { return s.seen + "/objects/" + object }

// Path is where the hosts find an object of a store that is a folder to them.
func (s *Store) Path(object string) string {
	return path.Join("/", strings.TrimPrefix(s.seen[len("file:"):], "//"), "objects", object)
}

// at is the path of an object in the store itself.
func (s *Store) at(object string) string { return path.Join(s.root, "objects", object) }

// NameOf is what an object is called in the store: SHA256-NAME.
func NameOf(ctx context.Context, o Object) (string, error) {
	f, err := os.Open(o.File)
	if err != nil {
		return "", err
	}
	defer f.Close() // only read
	h := sha256.New()
	if _, err := io.Copy(h, fetch.Reader(ctx, f)); err != nil {
		return "", fmt.Errorf("%s: %w", o.File, err)
	}
	return hex.EncodeToString(h.Sum(nil)) + "-" + o.Name, nil
}

// Hold writes a run's mark, and over an earlier one of the same run. From then on nobody takes away what it names.
func (s *Store) Hold(ctx context.Context, m Mark) error {
	m.Version = 1
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp("", "muster-mark-")
	if err != nil {
		return fmt.Errorf("mark: %w", err)
	}
	defer os.Remove(f.Name()) // a temporary file stays at worst
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("mark: %w", err)
	}
	_, err = fetch.Put(ctx, s.url+"/runs/"+markName(m.App, m.Run), f.Name(), "", s.o)
	return err
}

// markName is a file's name: neither an app's id nor a run's has an @ in it.
func markName(app, run string) string { return app + "@" + run + ".json" }

// Put brings an object that is not there yet, or is not what its name says: others may write there. The run's mark names it
// already.
func (s *Store) Put(ctx context.Context, name string, o Object) (brought bool, err error) {
	at := s.at(name)
	local, err := os.Stat(o.File)
	if err != nil {
		return false, err
	}
	digest, _, _ := strings.Cut(name, "-")
	if err := s.settled(ctx, digest); err != nil {
		return false, err
	}
	right, err := s.right(ctx, at, digest, local.Size())
	if err != nil {
		return false, err
	}
	if !right {
		if _, err := fetch.Put(ctx, s.url+"/objects/"+name, o.File, digest, s.o); err != nil {
			return false, err
		}
		brought = true
	}
	if s.local && o.Executable {
		return brought, executable(at)
	}
	return brought, nil
}

// right tells that a file is there and has a digest.
func (s *Store) right(ctx context.Context, at, digest string, size int64) (_ bool, err error) {
	there, err := s.in.Stat(ctx, at)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || there.Dir || there.Size != size {
		return false, err
	}
	c, err := s.in.Open(ctx, at, fetch.Position{})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	h := sha256.New()
	if _, err := io.Copy(h, fetch.Reader(ctx, c)); err != nil {
		return false, err
	}
	return hex.EncodeToString(h.Sum(nil)) == digest, nil
}

// executable lets everybody run a file; who is not its owner finds that done.
func executable(at string) error {
	info, err := os.Stat(at)
	if err == nil && info.Mode().Perm()&0o111 != 0o111 {
		err = os.Chmod(at, 0o755) //nolint:gosec // agents of all users run it
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// Marks are those of all runs, oldest first. What cannot be read as one is left out.
func (s *Store) Marks(ctx context.Context) ([]Mark, error) {
	all, err := s.in.List(ctx, path.Join(s.root, "runs"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var marks []Mark
	for _, one := range all {
		if one.Dir || !strings.HasSuffix(one.Path, ".json") || strings.HasPrefix(path.Base(one.Path), ".") {
			continue
		}
		m, err := s.mark(ctx, one.Path)
		if errors.Is(err, fs.ErrNotExist) { // its run ended meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		if m.App+"@"+m.Run+".json" == path.Base(one.Path) {
			marks = append(marks, m)
		}
	}
	slices.SortStableFunc(marks, func(a, b Mark) int { return a.At.Compare(b.At) })
	return marks, nil
}

// mostMark bounds a mark, in bytes.
const mostMark = 1 << 20

func (s *Store) mark(ctx context.Context, at string) (m Mark, err error) {
	c, err := s.in.Open(ctx, at, fetch.Position{})
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	text, err := io.ReadAll(io.LimitReader(c, mostMark))
	if err != nil {
		return m, err
	}
	if json.Unmarshal(text, &m) != nil {
		return Mark{}, nil // somebody else's file
	}
	return m, nil
}

// Release takes away a run's mark, and the files that no other run's mark names. A run without a mark is no error.
func (s *Store) Release(ctx context.Context, app, run string) error {
	at := path.Join(s.root, "runs", markName(app, run))
	m, err := s.mark(ctx, at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.remove(ctx, at); err != nil {
		return err
	}
	return s.drop(ctx, m.Objects)
}

var objectName = regexp.MustCompile(`^[0-9a-f]{64}-[^/]+$`)

// going is a file beside an object that somebody may be taking away: `.going-SHA256-` and what makes it the only one. It is
// written before the marks are read. Whoever has written a mark since then finds it, and waits until it is gone; whoever has
// written one before is seen among the marks. So a file is never missing to a run that relies on it, and is moved by nobody.
const going = ".going-"

// goingFor is how long somebody may take to take a file away. Who has not by half of it leaves it there; one that is older is of a
// client that died.
const goingFor = 2 * time.Minute

// mostDropped bounds how many files are taken away at once: it takes a few calls for each, and a store of HDFS answers slowly. A
// later Sweep finds the rest.
const mostDropped = 50

// drop takes away files that no mark names. What one names is not announced, for whoever brings it would wait: of two runs that end
// at once the one whose mark went last finds none.
func (s *Store) drop(ctx context.Context, names []string) (err error) {
	ours := slices.Clone(names)
	ours = slices.DeleteFunc(ours, func(name string) bool { return !objectName.MatchString(name) }) // a mark is a file that others could have written
	if ours, err = s.unused(ctx, ours); err != nil || len(ours) == 0 {
		return err
	}
	ours = ours[:min(len(ours), mostDropped)]
	var announced []string
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawPatience)
		defer cancel()
		for _, at := range announced {
			err = errors.Join(err, s.remove(ctx, at))
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, goingFor/2)
	defer cancel()
	for _, name := range ours {
		at := s.at(going + name[:64] + "-" + rand.Text())
		announced = append(announced, at)
		w, err := s.in.Create(ctx, at)
		if err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
	}
	if ours, err = s.unused(ctx, ours); err != nil {
		return err
	}
	for _, name := range ours {
		if ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		err = errors.Join(err, s.remove(ctx, s.at(name)))
	}
	return err
}

// withdrawPatience bounds how long it takes to say that nothing is taken away any more, also after an interrupt: who waits for that
// has an end of its own.
const withdrawPatience = 10 * time.Second

// unused are those of some files that no mark names.
func (s *Store) unused(ctx context.Context, names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	marks, err := s.Marks(ctx)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, m := range marks {
		for _, name := range m.Objects {
			used[name] = true
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return used[name] }), nil
}

// remove takes away what may be gone already.
func (s *Store) remove(ctx context.Context, at string) error {
	if err := s.in.Remove(ctx, at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// settled waits until nobody takes away files with a digest: the caller's mark names one.
func (s *Store) settled(ctx context.Context, digest string) error {
	seen := map[string]time.Time{}
	for {
		all, err := s.in.List(ctx, path.Join(s.root, "objects"))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		busy := false
		for _, one := range all {
			if !strings.HasPrefix(path.Base(one.Path), going+digest+"-") {
				continue
			}
			if _, known := seen[one.Path]; !known {
				seen[one.Path] = time.Now()
			}
			if time.Since(seen[one.Path]) < goingFor {
				busy = true
			} else if err := s.remove(ctx, one.Path); err != nil {
				return err
			}
		}
		if !busy {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(settlePoll):
		}
	}
}

// settlePoll is how often a store is asked whether somebody is done.
const settlePoll = 100 * time.Millisecond

// abandoned is how old a file must be to be taken for one of a client that died.
const abandoned = 24 * time.Hour

// unfinished are the files of a client that died: one that it was writing, or was taking away another by.
var unfinished = regexp.MustCompile(`^\.(.+\.new|going-[0-9a-f]{64})-[A-Z2-7]{26}$`)

// Sweep takes away what clients that died have left: files that they were writing, and those that no mark names, of very many a
// part.
func (s *Store) Sweep(ctx context.Context) error {
	var old []string
	var errs []error
	for _, folder := range []string{"objects", "runs"} {
		all, err := s.in.List(ctx, path.Join(s.root, folder))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, one := range all {
			if one.Dir || one.ModTime.IsZero() || time.Since(one.ModTime) < abandoned {
				continue
			}
			name := path.Base(one.Path)
			switch {
			case unfinished.MatchString(name):
				errs = append(errs, s.remove(ctx, one.Path))
			case folder == "objects":
				old = append(old, name)
			}
		}
	}
	return errors.Join(append(errs, s.drop(ctx, old))...)
}

// String is the store's URL, as a person may read it.
func (s *Store) String() string { return fetch.Printable(s.url) }
