package packages

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"github.com/muster-agent/muster/packages/sign"
)

// PackOptions change what Pack writes.
type PackOptions struct {
	// Time is the time of every entry, to the second. Zero is the earliest that the format can say:
	// 1980-01-01 in a zip, 1970-01-01 in a tar.
	Time time.Time
}

// Packed is what Pack has written.
type Packed struct {
	Digest  string   // sha256 of the archive's bytes
	Bytes   int64    // of the archive
	Files   []string // what is in it, folders left aside, sorted
	LeftOut []string // what of the folder is not; a folder stands for all below it
}

// unfinished begins the name of an archive that is being written.
const unfinished = ".muster-pack-"

// ours begin the names of what muster package writes beside files; one that was killed leaves it.
var ours = []string{unfinished, ".muster-lint-", ".muster-modernize-", ".muster-sign-"}

// Pack writes the files of the folder dir as the archive at file, in the format that its name ends in, whole or not at
// all. The same files give the same bytes: entries are sorted, and their times, owners and modes are not those of the
// disk; of a mode only whether the owner may execute is kept. Bytes may differ between versions of muster, where the
// compressor does.
//
// What no package wants is left out: folders of version control, caches of Python, backups of editors, and the archive
// itself with its signature. What Open would refuse is refused.
func Pack(dir, file string, o PackOptions) (packed Packed, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("pack %s: %w", dir, err)
		}
	}()
	ending, err := endingOf(file)
	if err != nil {
		return packed, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return packed, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	entries, leftOut, err := gather(root, file)
	if err != nil {
		return packed, err
	}
	packed = Packed{LeftOut: leftOut}
	for _, e := range entries {
		if !e.mode.IsDir() {
			packed.Files = append(packed.Files, e.name)
		}
	}
	part := filepath.Join(filepath.Dir(file), unfinished+rand.Text()+ending)
	defer func() {
		if err != nil {
			err = errors.Join(err, removeIfThere(part))
		}
	}()
	if packed.Digest, packed.Bytes, err = writeArchive(root, entries, part, ending, o); err != nil {
		return packed, called(err, part, file)
	}
	if err := opens(part); err != nil {
		return packed, err
	}
	return packed, called(os.Rename(part, file), part, file)
}

// endingOf is the ending that says the format.
func endingOf(file string) (string, error) {
	for _, e := range packEndings() {
		if strings.HasSuffix(file, e) && filepath.Base(file) != e {
			return e, nil
		}
	}
	return "", fmt.Errorf("into %s: want a name that ends in one of %s", file, strings.Join(packEndings(), " "))
}

func packEndings() []string { return []string{".zip", ".tar.gz", ".tgz", ".tar.zst"} }

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// called names a file in an error by the name that it was to have.
func called(err error, part, file string) error {
	if one, ok := errors.AsType[*fs.PathError](err); ok && one.Path == part {
		one.Path = file
	}
	if one, ok := errors.AsType[*os.LinkError](err); ok && one.Old == part {
		return fmt.Errorf("write %s: %w", file, one.Err)
	}
	return err
}

// opens asks the reader whether it will take the archive: its limits and rules are in one place. What it refuses is
// told of the entry: the archive has no name yet.
func opens(file string) error {
	p, err := Open(file)
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		refused.Archive = ""
		return refused
	}
	if err != nil {
		return err
	}
	return p.Close()
}

// entry is one file, folder or link of the archive.
type entry struct {
	name string
	mode fs.FileMode // fixed
	size int64
	link string
}

// gather lists what goes into the archive, sorted, and what does not.
func gather(root *os.Root, file string) (entries []entry, leftOut []string, err error) {
	tree := root.FS()
	own := ownFiles(file)
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if unwanted(d) || own.has(info) {
			leftOut = append(leftOut, name)
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		e, err := newEntry(root, name, info)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		entries = append(entries, e)
		return nil
	})
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	slices.Sort(leftOut)
	return entries, leftOut, err
}

func newEntry(root *os.Root, name string, info fs.FileInfo) (entry, error) {
	e := entry{name: name, mode: 0o644}
	switch {
	case !utf8.ValidString(name):
		return e, errors.New("got a name that is not UTF-8, which readers of archives take for different names")
	case info.IsDir():
		e.mode = fs.ModeDir | 0o755
	case info.Mode()&fs.ModeSymlink != 0:
		e.mode = fs.ModeSymlink | 0o777
		var err error
		if e.link, err = root.Readlink(name); err != nil {
			return e, err
		}
		return e, staysInside(root, name, e.link)
	case !info.Mode().IsRegular():
		return e, fmt.Errorf("got a %s, want files, folders and links", KindName(info.Mode()))
	default:
		e.size = info.Size()
		if info.Mode()&0o100 != 0 {
			e.mode = 0o755
		}
	}
	return e, nil
}

// staysInside refuses a link whose text or whose end lies outside of the folder, as the reader does.
func staysInside(root *os.Root, name, target string) error {
	if err := checkTarget(name, target); err != nil {
		return err
	}
	return leadsInside(root, name)
}

// unwanted tells what no package wants: it differs from one checkout, run or editor to the next.
func unwanted(d fs.DirEntry) bool {
	name := d.Name()
	switch name {
	case ".git", ".hg", ".svn", ".bzr", "CVS", "__pycache__", ".DS_Store":
		return true
	}
	if d.IsDir() {
		return false
	}
	emacs := strings.HasPrefix(name, ".#") || len(name) > 1 && strings.HasPrefix(name, "#") &&
		strings.HasSuffix(name, "#")
	isPrefix := func(start string) bool { return strings.HasPrefix(name, start) }
	return emacs || slices.ContainsFunc(ours, isPrefix) || slices.Contains([]string{".pyc", ".pyo", ".swp", ".swo"},
		path.Ext(name)) ||
		strings.HasSuffix(name, "~")
}

// own are the archive and its signature of an earlier time.
type own []fs.FileInfo

func ownFiles(file string) own {
	var out own
	for _, path := range []string{file, file + sign.Ending} {
		if info, err := os.Lstat(path); err == nil {
			out = append(out, info)
		}
	}
	return out
}

func (o own) has(info fs.FileInfo) bool {
	return slices.ContainsFunc(o, func(mine fs.FileInfo) bool { return os.SameFile(mine, info) })
}

// writeArchive writes a new file, to the disk, and says its sha256 and size.
func writeArchive(
	root *os.Root, entries []entry, file, ending string, o PackOptions,
) (digest string, size int64, err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666) // the umask says who may read it
	if err != nil {
		return "", 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	to := &counted{to: f, sum: sha256.New()}
	if ending == ".zip" {
		err = writeZip(to, root, entries, o.Time)
	} else {
		err = writeTar(to, root, entries, ending, o.Time)
	}
	if err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(to.sum.Sum(nil)), to.bytes, f.Sync()
}

// counted sums and counts what passes.
type counted struct {
	to    io.Writer
	sum   hash.Hash
	bytes int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.sum.Write(p[:n])
	c.bytes += int64(n)
	return n, err
}

func writeZip(to io.Writer, root *os.Root, entries []entry, at time.Time) error {
	if earliest := time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC); at.Before(earliest) { // MS-DOS begins there
		at = earliest
	}
	w := zip.NewWriter(to)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at.UTC().Truncate(time.Second)}
		h.SetMode(e.mode)
		if e.mode.IsDir() {
			h.Name += "/"
		}
		part, err := w.CreateHeader(h)
		if err == nil {
			err = e.write(part, root)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return w.Close()
}

func writeTar(to io.Writer, root *os.Root, entries []entry, ending string, at time.Time) error {
	if at.IsZero() {
		at = time.Unix(0, 0)
	}
	z, err := compressor(to, ending)
	if err != nil {
		return err
	}
	w := tar.NewWriter(z)
	for _, e := range entries {
		h := &tar.Header{
			Typeflag: tar.TypeReg, Name: e.name, Size: e.size, Mode: int64(e.mode.Perm()),
			ModTime: at.UTC().Truncate(time.Second),
		}
		switch {
		case e.mode.IsDir():
			h.Typeflag, h.Name = tar.TypeDir, e.name+"/"
		case e.mode&fs.ModeSymlink != 0:
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		}
		err := w.WriteHeader(h)
		if err == nil && h.Typeflag == tar.TypeReg {
			err = e.write(w, root)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return errors.Join(w.Close(), z.Close())
}

// compressor writes neither name nor time of its own.
func compressor(to io.Writer, ending string) (io.WriteCloser, error) {
	if ending == ".tar.zst" {
		// One at a time: what the blocks become must not depend on the processors.
		return zstd.NewWriter(to, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
	}
	return gzip.NewWriterLevel(to, gzip.BestCompression)
}

// write copies the entry's content; a folder has none.
func (e entry) write(to io.Writer, root *os.Root) error {
	switch {
	case e.mode.IsDir():
		return nil
	case e.mode&fs.ModeSymlink != 0:
		_, err := io.WriteString(to, e.link)
		return err
	}
	f, err := root.Open(e.name)
	if err != nil {
		return err
	}
	n, err := io.Copy(to, io.LimitReader(f, e.size+1))
	if err == nil && n != e.size {
		err = errors.New("the file changed while it was read; build again")
	}
	return errors.Join(err, f.Close())
}
