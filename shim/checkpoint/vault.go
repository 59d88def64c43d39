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
	"github.com/muster-agent/muster/shim/store"
)

// Vault is the part of a store that one app's checkpoints are in:
//
//	<top>/<component>-<index>/step-<step>-g<generation>-<incarnation>/manifest.json
//	                                                                 manifest.json.sha256   for sha256sum -c
//	                                                                 files/…
//	<top>/<component>-<index>/_temporary/…                           what is not whole yet
//
// A folder of a step has its name when it is whole, and nobody writes to it then. Its name has the incarnation of the
// agent that wrote it, so no agent ever replaces another's.
type Vault struct {
	Store store.Store
	Top   string // the app's folder in Store
}

const (
	manifestName = "manifest.json"
	digestName   = "manifest.json.sha256"
	filesName    = "files"
	temporary    = "_temporary"
	shortInc     = 8 // letters of an incarnation in a name
)

// Kept is one checkpoint in a vault, as its name tells.
type Kept struct {
	Instance   string
	Name       string // of its folder
	Step       int64
	Generation int
	Inc        string // the first letters
}

var keptForm = regexp.MustCompile(`^step-([0-9]{1,18})-g([0-9]{1,9})-([0-9a-f]{8})$`)

func parseKept(instance, name string) (Kept, bool) {
	m := keptForm.FindStringSubmatch(name)
	if m == nil {
		return Kept{}, false
	}
	step, errS := strconv.ParseInt(m[1], 10, 64)
	gen, errG := strconv.Atoi(m[2])
	k := Kept{Instance: instance, Name: name, Step: step, Generation: gen, Inc: m[3]}
	return k, errS == nil && errG == nil && k == k.named()
}

// named has the one name that such a checkpoint has: no zeros lead its numbers.
func (k Kept) named() Kept {
	k.Name = fmt.Sprintf("step-%d-g%d-%s", k.Step, k.Generation, k.Inc)
	return k
}

// Named is the checkpoint of a URL that was committed; false: no vault made it.
func Named(url string) (Kept, bool) {
	dir, name := path.Split(strings.TrimSuffix(url, "/"))
	instance := path.Base(dir)
	if !instanceForm.MatchString(instance) {
		return Kept{}, false
	}
	return parseKept(instance, name)
}

// Folder is where a checkpoint lies in the store.
func (v Vault) Folder(k Kept) string { return v.Top + "/" + k.Instance + "/" + k.Name }

// Instances are those that have stored something.
func (v Vault) Instances(ctx context.Context) ([]string, error) {
	entries, err := v.Store.List(ctx, v.Top)
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

// List are the checkpoints that an instance has stored, by their names alone, oldest first: by generation, then by
// step.
func (v Vault) List(ctx context.Context, instance string) ([]Kept, error) {
	entries, err := v.Store.List(ctx, v.Top+"/"+instance)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []Kept
	for _, e := range entries {
		if k, ok := parseKept(instance, path.Base(e.Path)); ok && e.Dir {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b Kept) int {
		return cmp.Or(cmp.Compare(a.Generation, b.Generation), cmp.Compare(a.Step, b.Step), cmp.Compare(a.Inc, b.Inc))
	})
	return all, err
}

// ErrTorn is a checkpoint in a store that is not as it was stored.
var ErrTorn = errors.New("not as it was stored")

// ErrAbsent is a checkpoint of which a store has not even the folder: it was removed, or this is not the store that has
// it (a share that is not mounted here).
var ErrAbsent = errors.New("not in the store, as this host sees it")

// Read reads a manifest and gives the SHA-256 of its text. Without the digest that lies beside it, with another, or of
// another checkpoint, it is ErrTorn; without a folder it is ErrAbsent.
func (v Vault) Read(ctx context.Context, k Kept) (Manifest, string, error) {
	dir := v.Folder(k)
	text, err := v.read(ctx, dir+"/"+manifestName, mostManifest)
	if err != nil {
		return Manifest{}, "", v.torn(ctx, dir, err)
	}
	line, err := v.read(ctx, dir+"/"+digestName, 1<<10)
	if err != nil {
		return Manifest{}, "", v.torn(ctx, dir, err)
	}
	sum := digest(text)
	if string(line) != digestLine(sum) {
		return Manifest{}, "", fmt.Errorf("%s: %s: %w", dir, manifestName, ErrTorn)
	}
	m, err := ParseManifest(text)
	if err != nil {
		return Manifest{}, "", fmt.Errorf("%s: %w: %w", dir, err, ErrTorn)
	}
	if m.Kept() != k {
		return Manifest{}, "", fmt.Errorf("%s: its manifest is another's: %w", dir, ErrTorn)
	}
	return m, sum, nil
}

// torn says of a checkpoint that lacks something that it is torn; what keeps a store from being read stays what it is.
func (v Vault) torn(ctx context.Context, dir string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := v.Store.Stat(ctx, dir); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", dir, ErrAbsent)
		}
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrNotFile) || errors.Is(err, errLong) {
		return fmt.Errorf("%s: %w: %w", dir, err, ErrTorn)
	}
	return err
}

var errLong = errors.New("longer than it can be")

func (v Vault) read(ctx context.Context, name string, most int64) (_ []byte, err error) {
	c, err := v.Store.Open(ctx, name, store.Position{})
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

// Kept is the name that it has in a vault.
func (m Manifest) Kept() Kept {
	return Kept{Instance: m.Instance, Step: m.Step, Generation: m.Generation, Inc: m.Inc[:shortInc]}.named()
}

// Send copies files into the vault's store; below a folder that is nobody's yet.
type Send func(ctx context.Context, uploads []store.Upload) error

// errChanged is a file that is another one since it was found: a program saves over it, or has removed it.
var errChanged = errors.New("it changed while it was copied")

// Put stores a checkpoint that lies in from, and gives it its name when it is whole.
func (v Vault) Put(ctx context.Context, m Manifest, c format.Checkpoint, from *os.Root, send Send) (_ Kept, sum string, err error) {
	m.Version, m.Step, m.Path = ManifestVersion, c.Step, c.Path
	m.Files = nil
	for _, f := range c.Files {
		one, err := sumOf(ctx, from, f)
		if err != nil {
			return Kept{}, "", fmt.Errorf("read %s: %w", f.Name, err)
		}
		m.Files = append(m.Files, one)
	}
	text, err := m.Encode()
	if err != nil {
		return Kept{}, "", err
	}
	k := m.Kept()
	there, sum, err := v.Read(ctx, k)
	if err == nil && slices.Equal(there.Files, m.Files) {
		return k, sum, nil
	}
	if err != nil && !errors.Is(err, ErrTorn) && !errors.Is(err, ErrAbsent) {
		return Kept{}, "", err
	}
	tmp := v.Top + "/" + m.Instance + "/" + temporary + "/" + m.Inc + "-" + strconv.FormatInt(m.Step, 10)
	if err := v.remove(ctx, tmp); err != nil {
		return Kept{}, "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, v.remove(context.WithoutCancel(ctx), tmp))
		}
	}()
	var uploads []store.Upload
	for _, f := range m.Files {
		uploads = append(uploads, store.Upload{From: from, Name: f.Path, To: tmp + "/" + filesName + "/" + f.Path})
	}
	if err := send(ctx, uploads); err != nil {
		return Kept{}, "", err
	}
	for _, f := range c.Files {
		if now, err := from.Stat(f.Name); err != nil || now.Size() != f.Size || !now.ModTime().Equal(f.ModTime) {
			return Kept{}, "", fmt.Errorf("%s: %w", f.Name, errors.Join(errChanged, err))
		}
	}
	sum = digest(text)
	if err := errors.Join(v.write(ctx, tmp+"/"+digestName, []byte(digestLine(sum))), v.write(ctx, tmp+"/"+manifestName, text)); err != nil {
		return Kept{}, "", err
	}
	// The same agent has stored this step before: other bytes, or not to the end.
	if err := v.Remove(ctx, k); err != nil {
		return Kept{}, "", err
	}
	if err := v.Store.Rename(ctx, tmp, v.Folder(k)); err != nil {
		return Kept{}, "", err
	}
	return k, sum, v.Store.Prune(ctx, path.Dir(tmp))
}

// Changed tells that a checkpoint is not stored because its files are others by now: a program saves over it, or has
// removed it.
func Changed(err error) bool { return errors.Is(err, errChanged) }

// Keep removes what an instance has stored beyond n: what nobody names any more first, for that was given up, then the
// oldest. What is named, and of the step least or a later one, stays, however much that is. Each is given up by who
// asks, before it goes.
func (v Vault) Keep(ctx context.Context, instance string, n int, least int64, named func(Kept) bool, giveUp func(Kept) error) error {
	kept, err := v.List(ctx, instance)
	if err != nil || len(kept) <= n {
		return err
	}
	var spare, wanted []Manifest
	for _, k := range kept {
		m, _, err := v.Read(ctx, k)
		if errors.Is(err, ErrTorn) || errors.Is(err, ErrAbsent) {
			continue // whoever looks for the reason finds it there
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
		if err := giveUp(m.Kept()); err != nil {
			return err
		}
		if err := v.Remove(ctx, m.Kept()); err != nil {
			return err
		}
	}
	return nil
}

// Same tells whether a folder has a manifest's files to the last byte.
func Same(ctx context.Context, root *os.Root, m Manifest) bool {
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

func (v Vault) write(ctx context.Context, name string, text []byte) error {
	w, err := v.Store.Create(ctx, name)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, bytes.NewReader(text))
	return errors.Join(err, w.Close())
}

// Remove takes a checkpoint away: its name first, so that nobody takes what is left for a whole one.
func (v Vault) Remove(ctx context.Context, k Kept) error {
	away := v.Top + "/" + k.Instance + "/" + temporary + "/gone-" + k.Name
	err := errors.Join(v.remove(ctx, away), v.Store.MkdirAll(ctx, path.Dir(away)))
	if err == nil {
		err = v.Store.Rename(ctx, v.Folder(k), away)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = v.remove(ctx, away)
	}
	return errors.Join(err, v.Store.Prune(ctx, path.Dir(away)))
}

// Quarantine moves all that an instance has stored into `set-aside-<why>/` of its folder: nobody lists it, resumes from
// it or removes it there.
func (v Vault) Quarantine(ctx context.Context, instance, why string) ([]Kept, error) {
	all, err := v.List(ctx, instance)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	to := v.Top + "/" + instance + "/set-aside-" + why
	if err := v.Store.MkdirAll(ctx, to); err != nil {
		return nil, err
	}
	for i, k := range all {
		if err := v.Store.Rename(ctx, v.Folder(k), to+"/"+k.Name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return all[:i], err
		}
	}
	return all, nil
}

// Sweep removes what an instance's earlier agents have not stored to the end. Only who holds the index may ask for it.
func (v Vault) Sweep(ctx context.Context, instance string) error {
	return v.remove(ctx, v.Top+"/"+instance+"/"+temporary)
}

func (v Vault) remove(ctx context.Context, name string) error {
	err := v.Store.Remove(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// sumOf reads a file that must be the one that was found.
func sumOf(ctx context.Context, from *os.Root, want format.File) (_ ManifestFile, err error) {
	f, err := from.OpenFile(want.Name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ManifestFile{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return ManifestFile{}, err
	}
	if !info.Mode().IsRegular() || info.Size() != want.Size || !info.ModTime().Equal(want.ModTime) {
		return ManifestFile{}, errChanged
	}
	sum, n, err := hashOf(ctx, f)
	if err == nil && n != want.Size {
		err = errChanged
	}
	return ManifestFile{Path: want.Name, Size: n, SHA256: sum}, err
}

func hashOf(ctx context.Context, r io.Reader) (sum string, n int64, err error) {
	h := sha256.New()
	n, err = io.CopyBuffer(h, untilDone{ctx, r}, make([]byte, 256<<10))
	return hex.EncodeToString(h.Sum(nil)), n, err
}

// untilDone ends a long read with its context.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u untilDone) Read(b []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.r.Read(b)
}
