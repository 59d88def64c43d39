package packages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
)

// ExtractOptions are how an archive is unpacked; the zero value is good.
type ExtractOptions struct {
	Limits Limits
	// Name is what the archive is called where its path does not say, as in a cache that names files by their digest.
	Name string
	// Digest is the sha256 in hex that the archive must have; empty: any.
	Digest string
	// Replace takes away what is at the target once the archive is unpacked whole. Without it the target must not be
	// there, or be an empty folder.
	Replace bool
}

// Extracted is what was unpacked.
type Extracted struct {
	Digest string // sha256 of the archive's bytes, in hex
	Files  int    // files, folders and links
	Bytes  int64  // of all files
}

// Extract unpacks an archive file (zip, tar, tar.gz, tar.zst: the content tells, the name must not say otherwise) as
// the folder dir, whole or not at all: it is written beside dir and renamed. Files belong to the caller and keep their
// permission bits, less the umask; setuid, setgid and sticky bits, owners, times and attributes are dropped. Folders
// are open to all, less the umask. Links and hard links must stay inside; devices, pipes and sockets are refused. What
// an archive of a stranger may do wrong is a *RefusedError (ErrRefused) that names archive, entry, what is there and
// what would do; ErrExist (io/fs) tells that something is at dir.
func Extract(ctx context.Context, file, dir string, o ExtractOptions) (_ Extracted, err error) {
	name := o.Name
	if name == "" {
		name = file
	}
	a, err := openArchive(file, name)
	if err != nil {
		return Extracted{}, fmt.Errorf("extract %w", in(name, err))
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	done, err := a.extractAs(ctx, dir, o)
	if err != nil {
		return Extracted{}, fmt.Errorf("extract %w", in(name, err))
	}
	return done, nil
}

func (a *archive) extractAs(ctx context.Context, dir string, o ExtractOptions) (done Extracted, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return done, err
	}
	if !o.Replace {
		if err := absent(dir); err != nil {
			return done, err
		}
	}
	if done.Digest, err = a.digest(ctx); err != nil {
		return done, err
	}
	if o.Digest != "" && o.Digest != done.Digest {
		return done, refuse(wrongDigest, "sha256: got "+done.Digest, o.Digest+": fetch it again, or ask who packed it")
	}
	s, err := newScratch(dir)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	if done.Files, done.Bytes, err = a.extract(ctx, s.whole(), o.Limits); err != nil {
		return done, err
	}
	return done, s.become(dir, o.Replace)
}

// absent refuses a target that something is at.
func absent(dir string) error {
	there, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(there) == 0:
		return nil
	case errors.Is(err, syscall.ENOTDIR) || err == nil:
		return fmt.Errorf("%s: %w: name another folder, or remove it", dir, fs.ErrExist)
	}
	return err
}

// extract writes the archive's entries below the folder dir.
func (a *archive) extract(ctx context.Context, dir string, l Limits) (files int, bytes int64, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	l = l.filled()
	x := &extractor{root: root, tree: newTree(l), budget: &budget{Limits: l, packed: func() int64 { return a.size }}}
	if a.kind == kindZip {
		err = x.zip(ctx, a)
	} else {
		err = x.tar(ctx, a)
	}
	if err == nil {
		err = x.follow()
	}
	return x.tree.files, x.budget.written, err
}

// extractor writes entries. Hard links and files that come again make it remove before it writes.
type extractor struct {
	root   *os.Root
	tree   *tree
	budget *budget
	links  []string
}

// place takes an entry into the tree and makes its name free; the name is "." for the archive's root.
func (x *extractor) place(name string, kind fs.FileMode) (string, error) {
	clean, again, err := x.tree.add(name, kind)
	if err != nil || clean == "." {
		return clean, err
	}
	if again && kind != fs.ModeDir { // the later one wins, as when a tar was appended to
		return clean, x.root.Remove(clean)
	}
	return clean, mkdir(x.root, path.Dir(clean))
}

func (x *extractor) folder(name string) error {
	clean, err := x.place(name, fs.ModeDir)
	if err != nil {
		return err
	}
	return mkdir(x.root, clean)
}

func (x *extractor) file(name string, mode fs.FileMode, from io.Reader) error {
	clean, err := x.place(name, 0)
	if err != nil {
		return err
	}
	f, err := x.root.OpenFile(clean, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode.Perm()|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(&spender{f, x.budget}, from)
	return errors.Join(err, f.Close())
}

func (x *extractor) link(name, target string) error {
	clean, err := x.place(name, fs.ModeSymlink)
	if err != nil {
		return err
	}
	if err := checkTarget(clean, target); err != nil {
		return err
	}
	x.links = append(x.links, clean)
	return x.root.Symlink(target, clean)
}

// hardLink names a file that is there already a second time.
func (x *extractor) hardLink(name, target string) error {
	old, err := x.tree.clean(target)
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return refuse(refused.Reason, fmt.Sprintf("it is a hard link to %.200q: %s", target, refused.Got), refused.Want)
	}
	if err != nil {
		return err
	}
	if kind, there := x.tree.made[old]; !there || kind != 0 {
		return refuse(badHardLink, fmt.Sprintf("got a hard link to %.200q, which is no file before it", target),
			"one to a file that stands before it")
	}
	if clean, err := x.tree.clean(name); err == nil && clean == old {
		return refuse(badHardLink, "got a hard link to itself", "one to a file that stands before it")
	}
	clean, err := x.place(name, 0)
	if err != nil {
		return err
	}
	return x.root.Link(old, clean)
}

// follow looks at where each link leads once all are there.
func (x *extractor) follow() error {
	for _, name := range x.links {
		if err := leadsInside(x.root, name); err != nil {
			return at(name, err)
		}
	}
	return nil
}

// spender writes a file within the budget.
type spender struct {
	f *os.File
	b *budget
}

func (s *spender) Write(p []byte) (int, error) {
	if err := s.b.write(int64(len(p))); err != nil {
		return 0, err
	}
	return s.f.Write(p)
}
