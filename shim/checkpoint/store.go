package checkpoint

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/muster-agent/muster/shim/checkpoint/format"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/store"
)

// Store holds the checkpoints of one app in a folder of a file store:
//
//	<top>/<component>-<index>/step-<step>-g<generation>-<incarnation>/manifest.json
//	                                                                 manifest.json.sha256   for sha256sum -c
//	                                                                 files/…
//	<top>/<component>-<index>/_temporary/…                           incomplete copies
//
// The folder of a step gets its name when it is complete, and is not written to from then on. Its name has the
// incarnation of the agent that wrote it, so that no agent replaces another agent's copy.
type Store struct {
	Files store.Store
	Top   string // the app's folder in it
}

const (
	manifestName = "manifest.json"
	digestName   = "manifest.json.sha256"
	filesName    = "files"
	temporary    = "_temporary"
	shortInc     = 8 // letters of an incarnation in a name
)

// StoredCopy is one checkpoint in the store, as its name tells.
type StoredCopy struct {
	Instance   string
	Name       string // of its folder
	Step       int64
	Generation int
	Inc        string // the first letters
}

var copyForm = regexp.MustCompile(`^step-([0-9]{1,18})-g([0-9]{1,9})-([0-9a-f]{8})$`)

func parseCopy(instance, name string) (StoredCopy, bool) {
	m := copyForm.FindStringSubmatch(name)
	if m == nil {
		return StoredCopy{}, false
	}
	step, errS := strconv.ParseInt(m[1], 10, 64)
	gen, errG := strconv.Atoi(m[2])
	k := StoredCopy{Instance: instance, Name: name, Step: step, Generation: gen, Inc: m[3]}
	return k, errS == nil && errG == nil && k == k.named()
}

// named has the one name that such a checkpoint has: no zeros lead its numbers.
func (k StoredCopy) named() StoredCopy {
	k.Name = fmt.Sprintf("step-%d-g%d-%s", k.Step, k.Generation, k.Inc)
	return k
}

// copyAt is the checkpoint of a URL that was committed; false: it is not the name of a stored checkpoint.
func copyAt(url string) (StoredCopy, bool) {
	dir, name := path.Split(strings.TrimSuffix(url, "/"))
	instance := path.Base(dir)
	if !instanceForm.MatchString(instance) {
		return StoredCopy{}, false
	}
	return parseCopy(instance, name)
}

// Folder is a checkpoint's folder in the store.
func (s Store) Folder(k StoredCopy) string { return s.Top + "/" + k.Instance + "/" + k.Name }

// Instances are the instances that have stored checkpoints.
func (s Store) Instances(ctx context.Context) ([]string, error) {
	entries, err := s.Files.List(ctx, s.Top)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []string
	for _, e := range entries {
		if name := path.Base(e.Path); e.Dir && instanceForm.MatchString(name) {
			all = append(all, name)
		}
	}
	return all, err
}

// List lists an instance's checkpoints by their names alone, oldest first: by generation, then by step.
func (s Store) List(ctx context.Context, instance string) ([]StoredCopy, error) {
	entries, err := s.Files.List(ctx, s.Top+"/"+instance)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []StoredCopy
	for _, e := range entries {
		if k, ok := parseCopy(instance, path.Base(e.Path)); ok && e.Dir {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b StoredCopy) int {
		return cmp.Or(cmp.Compare(a.Generation, b.Generation), cmp.Compare(a.Step, b.Step), cmp.Compare(a.Inc, b.Inc))
	})
	return all, err
}

// errTorn is a checkpoint whose copy in the store differs from what was stored.
var errTorn = errors.New("not as it was stored")

// errAbsent is a checkpoint whose folder is missing in the store: it was removed, or this host sees another store (a
// share that is not mounted here).
var errAbsent = errors.New("not in the store, as this host sees it")

// Read reads a manifest and gives the SHA-256 of its text. Without the digest that lies beside it, with another, or of
// another checkpoint, it is errTorn; without a folder it is errAbsent.
func (s Store) Read(ctx context.Context, k StoredCopy) (Manifest, string, error) {
	dir := s.Folder(k)
	text, err := s.read(ctx, dir+"/"+manifestName, mostManifest)
	if err != nil {
		return Manifest{}, "", s.torn(ctx, dir, err)
	}
	line, err := s.read(ctx, dir+"/"+digestName, 1<<10)
	if err != nil {
		return Manifest{}, "", s.torn(ctx, dir, err)
	}
	sum := digest(text)
	if string(line) != digestLine(sum) {
		return Manifest{}, "", fmt.Errorf("%s: %s: %w", dir, manifestName, errTorn)
	}
	m, err := parseManifest(text)
	if err != nil {
		return Manifest{}, "", fmt.Errorf("%s: %w: %w", dir, err, errTorn)
	}
	if m.Copy() != k {
		return Manifest{}, "", fmt.Errorf("%s: its manifest is another's: %w", dir, errTorn)
	}
	return m, sum, nil
}

// torn turns a missing part of a checkpoint into errTorn; an error of the store itself stays as it is.
func (s Store) torn(ctx context.Context, dir string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := s.Files.Stat(ctx, dir); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", dir, errAbsent)
		}
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrNotFile) || errors.Is(err, errLong) {
		return fmt.Errorf("%s: %w: %w", dir, err, errTorn)
	}
	return err
}

var errLong = errors.New("longer than it can be")

func (s Store) read(ctx context.Context, name string, most int64) (_ []byte, err error) {
	c, err := s.Files.Open(ctx, name, store.Position{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	text, err := io.ReadAll(io.LimitReader(c, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s: %w", name, errLong)
	}
	return text, err
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func digestLine(sum string) string { return sum + "  " + manifestName + "\n" }

// Copy is the checkpoint's name in the store.
func (m Manifest) Copy() StoredCopy {
	return StoredCopy{Instance: m.Instance, Step: m.Step, Generation: m.Generation, Inc: m.Inc[:shortInc]}.named()
}

// sender copies files into the store, below a folder that no other agent uses.
type sender func(ctx context.Context, uploads []store.Upload) error

// errChanged is a file that the program has overwritten or removed since the agent found it.
var errChanged = errors.New("it changed while it was copied")

// Put stores a checkpoint of the folder from, and gives it its name when it is complete.
func (s Store) Put(
	ctx context.Context, m Manifest, c format.Checkpoint, from files.UserFolder, send sender,
) (_ StoredCopy, sum string, err error) {
	m.Version, m.Step, m.Path = manifestVersion, c.Step, c.Path
	m.Files = nil
	for _, f := range c.Files {
		one, err := sumOf(ctx, from, f)
		if err != nil {
			return StoredCopy{}, "", fmt.Errorf("read %s: %w", f.Name, err)
		}
		m.Files = append(m.Files, one)
	}
	text, err := m.Encode()
	if err != nil {
		return StoredCopy{}, "", err
	}
	k := m.Copy()
	there, sum, err := s.Read(ctx, k)
	if err == nil && slices.Equal(there.Files, m.Files) {
		return k, sum, nil
	}
	if err != nil && !errors.Is(err, errTorn) && !errors.Is(err, errAbsent) {
		return StoredCopy{}, "", err
	}
	tmp := s.Top + "/" + m.Instance + "/" + temporary + "/" + m.Inc + "-" + strconv.FormatInt(m.Step, 10)
	if err := s.remove(ctx, tmp); err != nil {
		return StoredCopy{}, "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.remove(context.WithoutCancel(ctx), tmp))
		}
	}()
	var uploads []store.Upload
	for _, f := range m.Files {
		uploads = append(uploads, store.Upload{From: from, Name: f.Path, To: tmp + "/" + filesName + "/" + f.Path})
	}
	if err := send(ctx, uploads); err != nil {
		return StoredCopy{}, "", err
	}
	for _, f := range c.Files {
		if now, err := from.Stat(f.Name); err != nil || now.Size() != f.Size || !now.ModTime().Equal(f.ModTime) {
			return StoredCopy{}, "", fmt.Errorf("%s: %w", f.Name, errors.Join(errChanged, err))
		}
	}
	sum = digest(text)
	if err := errors.Join(s.write(ctx, tmp+"/"+digestName, []byte(digestLine(sum))),
		s.write(ctx, tmp+"/"+manifestName, text)); err != nil {
		return StoredCopy{}, "", err
	}
	// The same agent may have stored this step before, with other bytes or incompletely.
	if err := s.Remove(ctx, k); err != nil {
		return StoredCopy{}, "", err
	}
	if err := s.Files.Rename(ctx, tmp, s.Folder(k)); err != nil {
		return StoredCopy{}, "", err
	}
	return k, sum, s.Files.Prune(ctx, path.Dir(tmp))
}

// Keep removes an instance's checkpoints beyond n: first those that the registry does not name, then the oldest. Named
// checkpoints of the step least or later stay, however many they are. giveUp is called with each before it is removed.
func (s Store) Keep(
	ctx context.Context, instance string, n int, least int64, named func(StoredCopy) bool,
	giveUp func(StoredCopy) error,
) error {
	kept, err := s.List(ctx, instance)
	if err != nil || len(kept) <= n {
		return err
	}
	var spare, wanted []Manifest
	for _, k := range kept {
		m, _, err := s.Read(ctx, k)
		if errors.Is(err, errTorn) || errors.Is(err, errAbsent) {
			continue // it stays as evidence
		}
		if err != nil {
			return err
		}
		if named(k) {
			wanted = append(wanted, m)
		} else {
			spare = append(spare, m)
		}
	}
	slices.SortFunc(spare, Manifest.before)
	slices.SortFunc(wanted, Manifest.before)
	all := slices.Concat(spare, wanted)
	for i, m := range all[:max(0, len(all)-n)] {
		if i >= len(spare) && m.Step >= least {
			continue
		}
		if err := giveUp(m.Copy()); err != nil {
			return err
		}
		if err := s.Remove(ctx, m.Copy()); err != nil {
			return err
		}
	}
	return nil
}

// same tells whether a folder has a manifest's files byte by byte.
func same(ctx context.Context, root files.UserFolder, m Manifest) bool {
	for _, f := range m.Files {
		info, err := root.Stat(f.Path)
		if err != nil || !info.Mode().IsRegular() || info.Size() != f.Size {
			return false
		}
	}
	for _, f := range m.Files {
		info, err := root.Stat(f.Path)
		if err != nil {
			return false
		}
		one, err := sumOf(ctx, root, format.File{Name: f.Path, Size: f.Size, ModTime: info.ModTime()})
		if err != nil || one.SHA256 != f.SHA256 {
			return false
		}
	}
	return true
}

func (s Store) write(ctx context.Context, name string, text []byte) error {
	w, err := s.Files.Create(ctx, name)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, bytes.NewReader(text))
	return errors.Join(err, w.Close())
}

// Remove removes a checkpoint, its name first: the remains must not look like a complete one.
func (s Store) Remove(ctx context.Context, k StoredCopy) error {
	away := s.Top + "/" + k.Instance + "/" + temporary + "/gone-" + k.Name
	err := errors.Join(s.remove(ctx, away), s.Files.MkdirAll(ctx, path.Dir(away)))
	if err == nil {
		err = s.Files.Rename(ctx, s.Folder(k), away)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = s.remove(ctx, away)
	}
	return errors.Join(err, s.Files.Prune(ctx, path.Dir(away)))
}

// Quarantine moves all checkpoints of an instance into `set-aside-<why>/` of its folder, where they are not listed,
// resumed from or removed.
func (s Store) Quarantine(ctx context.Context, instance, why string) ([]StoredCopy, error) {
	all, err := s.List(ctx, instance)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	to := s.Top + "/" + instance + "/set-aside-" + why
	if err := s.Files.MkdirAll(ctx, to); err != nil {
		return nil, err
	}
	for i, k := range all {
		if err := s.Files.Rename(ctx, s.Folder(k), to+"/"+k.Name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return all[:i], err
		}
	}
	return all, nil
}

// Sweep removes the incomplete copies of an instance's earlier agents. Only the holder of the index may call it.
func (s Store) Sweep(ctx context.Context, instance string) error {
	return s.remove(ctx, s.Top+"/"+instance+"/"+temporary)
}

func (s Store) remove(ctx context.Context, name string) error {
	err := s.Files.Remove(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// sumOf reads a file that must not have changed since it was found.
func sumOf(ctx context.Context, from files.UserFolder, want format.File) (_ manifestFile, err error) {
	f, err := from.OpenFile(want.Name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return manifestFile{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return manifestFile{}, err
	}
	if !info.Mode().IsRegular() || info.Size() != want.Size || !info.ModTime().Equal(want.ModTime) {
		return manifestFile{}, errChanged
	}
	sum, n, err := hashOf(ctx, f)
	if err == nil && n != want.Size {
		err = errChanged
	}
	return manifestFile{Path: want.Name, Size: n, SHA256: sum}, err
}

func hashOf(ctx context.Context, r io.Reader) (sum string, n int64, err error) {
	h := sha256.New()
	n, err = io.CopyBuffer(h, store.Reader(ctx, r), make([]byte, 256<<10))
	return hex.EncodeToString(h.Sum(nil)), n, err
}
