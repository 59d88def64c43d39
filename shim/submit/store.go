package submit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/store"
)

// runStore holds the files that jobs bring to their hosts: each run has a folder of its own in it, and no two runs
// share a file.
//
//	APP@RUN/SHA256-NAME  a file
//	APP@RUN/run.json     a Record
type runStore struct {
	url   string
	in    store.Store
	root  string // path in the store
	set   store.Set
	local bool   // a folder of this machine, or one that is mounted here
	seen  string // its URL, or path, on the hosts
}

// runFolder is the folder of one run.
type runFolder struct {
	store *runStore
	name  string
}

// artifact is a file to bring.
type artifact struct {
	Name       string // what it is called in the store: its ending tells what it is
	Path       string // where it lies here
	Executable bool
}

// record says whose folder it lies in, and which registry knows how the run ends.
type record struct {
	Version  int              `json:"version"`
	App      string           `json:"app"`
	Run      string           `json:"run"`
	Registry registry.Address `json:"registry"`
	Launcher string           `json:"launcher"`
	At       time.Time        `json:"at"`
}

const recordName = "run.json"

// errReadOnly is a store that nothing can be put into.
var errReadOnly = errors.New("nothing can be put there")

// openStore finds the store at a file: or hdfs: URL, or at a path. It may not exist yet.
func openStore(ctx context.Context, url string, stores store.Set) (*runStore, error) {
	url = strings.TrimRight(url, "/")
	if isWeb(url) {
		return nil, fmt.Errorf("store %s: %w: want hdfs:, or a folder that all hosts see",
			store.Printable(url), errReadOnly)
	}
	in, root, err := stores.Open(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	s := &runStore{url: url, in: in, root: root, set: stores}
	if s.local = !strings.Contains(url, ":") || strings.HasPrefix(strings.ToLower(url), "file:"); s.local {
		s.url = "file://" + root
	}
	s.seen = s.url
	if !s.local {
		return s, nil
	}
	return s, checkFolder(root)
}

// checkFolder refuses a file: what is not there yet is made, and a file cannot have folders below it.
func checkFolder(at string) error {
	for at = path.Clean(at); ; at = path.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case err == nil && !info.IsDir():
			return fmt.Errorf("store %s is a file, want a folder", at)
		case err == nil, at == path.Dir(at):
			return nil
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
			return nil // what is wrong with it is told by who opens it
		}
	}
}

func isWeb(url string) bool {
	scheme := store.SchemeOf(url)
	return scheme == "http:" || scheme == "https:"
}

// SeenAs says what the store is to the hosts: a web server that shows the folder, or another path.
func (s *runStore) SeenAs(url string) {
	s.seen = strings.TrimRight(url, "/")
	if strings.HasPrefix(s.seen, "/") {
		s.seen = "file://" + s.seen
	}
}

// Local tells that the hosts see a folder: files in it have paths there.
func (s *runStore) Local() bool { return strings.HasPrefix(strings.ToLower(s.seen), "file:") }

// Web tells that the hosts see a web server.
func (s *runStore) Web() bool { return isWeb(s.seen) }

// String is the store's URL, as a person may read it.
func (s *runStore) String() string { return store.Printable(s.url) }

// Folder is that of a run. Neither an app's id nor a run's has an @ in it.
func (s *runStore) Folder(app, run string) *runFolder { return &runFolder{s, app + "@" + run} }

// Records are those of all runs that have a folder. What is not a run's folder is left out.
func (s *runStore) Records(ctx context.Context) ([]record, error) {
	all, err := s.in.List(ctx, s.root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var records []record
	for _, one := range all {
		app, run, ok := strings.Cut(path.Base(one.Path), "@")
		if !one.Dir || !ok || !appdef.ValidName(app) || !appdef.ValidName(run) {
			continue
		}
		r, err := s.record(ctx, path.Join(one.Path, recordName))
		if errors.Is(err, fs.ErrNotExist) { // not a run's folder, or the run ended meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		if r.App == app && r.Run == run {
			records = append(records, r)
		}
	}
	return records, nil
}

// mostRecord bounds a record, in bytes.
const mostRecord = 1 << 20

func (s *runStore) record(ctx context.Context, at string) (r record, err error) {
	c, err := s.in.Open(ctx, at, store.Position{})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	text, err := io.ReadAll(io.LimitReader(c, mostRecord))
	if err != nil {
		return r, err
	}
	if json.Unmarshal(text, &r) != nil {
		return record{}, nil // not a record of muster
	}
	return r, nil
}

// nameOf is what a file is called in the store: SHA256-NAME.
func nameOf(ctx context.Context, file artifact) (string, error) {
	f, err := os.Open(file.Path)
	if err != nil {
		return "", err
	}
	defer f.Close() // only read
	h := sha256.New()
	if _, err := io.Copy(h, store.Reader(ctx, f)); err != nil {
		return "", fmt.Errorf("%s: %w", file.Path, err)
	}
	return hex.EncodeToString(h.Sum(nil)) + "-" + file.Name, nil
}

// URL is where the hosts find a file of the folder: what an agent is told to load.
func (f *runFolder) URL(name string) string { return f.store.seen + "/" + f.name + "/" + name }

// Path is where the hosts find a file of a store that is a folder to them.
func (f *runFolder) Path(name string) string {
	return path.Join("/", strings.TrimPrefix(f.store.seen[len("file:"):], "//"), f.name, name)
}

// at is the path of a file in the store itself.
func (f *runFolder) at(name string) string { return path.Join(f.store.root, f.name, name) }

// Files are the names of all that is there, the record too; none: there is no such folder.
func (f *runFolder) Files(ctx context.Context) ([]string, error) {
	all, err := f.store.in.List(ctx, f.at(""))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names := make([]string, len(all))
	for i, one := range all {
		names[i] = path.Base(one.Path)
	}
	return names, nil
}

// Begin writes the run's record, and over an earlier one of the same run: from then on Records knows the folder.
func (f *runFolder) Begin(ctx context.Context, r record) error {
	r.Version = 1
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	file, err := os.CreateTemp("", "muster-run-")
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	defer os.Remove(file.Name()) // a temporary file stays at worst
	_, err = file.Write(append(text, '\n'))
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return f.put(ctx, recordName, file.Name(), "")
}

// Put brings a file under the name that NameOf gave, and over what is there: others may write into the store.
func (f *runFolder) Put(ctx context.Context, name string, file artifact) error {
	digest, _, _ := strings.Cut(name, "-")
	if err := f.put(ctx, name, file.Path, digest); err != nil {
		return err
	}
	if f.store.local && file.Executable {
		return executable(f.at(name))
	}
	return nil
}

func (f *runFolder) put(ctx context.Context, name, from, digest string) error {
	_, err := store.Put(ctx, f.store.url+"/"+f.name+"/"+name, from, digest, f.store.set)
	return err
}

// executable lets everybody run a file.
func executable(at string) error {
	if err := os.Chmod(at, 0o755); err != nil { //nolint:gosec // agents of all users run it
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// Delete removes files of the folder. One that is not there is no error.
func (f *runFolder) Delete(ctx context.Context, names ...string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, f.remove(ctx, name))
	}
	return errors.Join(errs...)
}

// Remove removes the folder with all that is in it. A run without one is no error.
func (f *runFolder) Remove(ctx context.Context) error { return f.remove(ctx, "") }

func (f *runFolder) remove(ctx context.Context, name string) error {
	if err := f.store.in.Remove(ctx, f.at(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
