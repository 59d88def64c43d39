package image

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/apex/log"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/umoci/oci/layer"
	"golang.org/x/sys/unix"
)

// umoci writes its findings to standard error by a logger of the whole process; what matters of them is reported here.
func init() { log.SetLevel(log.FatalLevel) } //nolint:forbidigo // this is what keeps it quiet

// Bounds of a single entry, and of what is reported about those that were left out.
const (
	maxPath   = 4096     // bytes of a name or a link's target: PATH_MAX
	maxDepth  = 256      // folders in a name; each is looked at for each entry below it
	maxXattrs = 64 << 10 // bytes of an entry's attributes, XATTR_LIST_MAX and more
	maxWindow = 128 << 20
	maxTold   = 8
)

// A blob may hold up to generousBytes unpacked, and above that up to maxRatio times its own size: gzip reaches 1000 on
// zeros, real layers stay below 20.
const (
	generousBytes = 1 << 30
	maxRatio      = 200
)

func limit(most, packed int64) int64 {
	if packed > most/maxRatio {
		return most
	}
	return min(most, max(generousBytes, packed*maxRatio))
}

// unpacker lays one layer out in a folder as one of overlayfs's lower folders: whiteouts become character devices 0:0,
// opaque folders get an attribute. What a layer may not hold is refused or left out before umoci sees it.
type unpacker struct {
	form     form
	maxFiles int
	maxBytes int64

	root      *os.Root
	extractor *layer.TarExtractor
	dir       string
	files     int
	bytes     int64
	whiteouts map[string]bool // names that this layer hides
	folders   map[string]bool // folders that are there and need no second look
	left      []string        // entries that were left out, the first few, with why
	leftOut   int
}

// unpack reads the blob whole and checks it on both sides: packed against its digest, unpacked against its diff id.
func (u *unpacker) unpack(ctx context.Context, from io.Reader, ref layerRef, dir string) (err error) {
	if u.root, err = os.OpenRoot(dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, u.root.Close()) }()
	u.dir, u.extractor, u.whiteouts = dir, u.form.extractor(), map[string]bool{}
	u.folders = map[string]bool{}

	packed, unpacked := ref.Digest.Algorithm().Digester(), ref.diffID.Algorithm().Digester()
	raw := bufio.NewReaderSize(io.TeeReader(contextReader{ctx, from}, packed.Hash()), 1<<20)
	plain, err := decompress(raw, ref.packed)
	if err != nil {
		return err
	}
	defer plain.Close()
	bounded := &boundedReader{r: io.TeeReader(plain, unpacked.Hash()), left: u.maxBytes}
	if err = u.entries(tar.NewReader(bounded)); err == nil {
		_, err = io.Copy(io.Discard, bounded) // what follows the tar's end counts in its digest too
	}
	if err == nil {
		_, err = io.Copy(io.Discard, raw)
	}
	if err != nil {
		return u.blame(ctx, err, from, ref)
	}
	if got := packed.Digest(); got != ref.Digest {
		return &digestError{What: "layer", Want: ref.Digest, Got: got}
	}
	if got := unpacked.Digest(); got != ref.diffID {
		return &digestError{What: "layer as a tar", Want: ref.diffID, Got: got}
	}
	return nil
}

// blame: a tar or a stream that breaks off in a blob that is not what it should be is not the packer's fault.
func (u *unpacker) blame(ctx context.Context, err error, from io.Reader, ref layerRef) error {
	f, ok := from.(*blob)
	if !ok || errors.Is(err, ErrRefused) || errors.Is(err, context.Canceled) {
		return err
	}
	if wrong := checkFile(ctx, f.File, ref.Descriptor); errors.Is(wrong, ErrDigest) {
		return wrong
	}
	return err
}

func decompress(r io.Reader, packed compression) (io.ReadCloser, error) {
	switch packed {
	case gzipTar:
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, refuse("gzip: %v", err)
		}
		return z, nil
	case zstdTar:
		z, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, refuse("zstd: %v", err)
		}
		return z.IOReadCloser(), nil
	case plainTar:
		return io.NopCloser(r), nil
	}
	return nil, refuse("got a layer packed as %q", packed)
}

// boundedReader refuses to go beyond a number of bytes.
type boundedReader struct {
	r    io.Reader
	left int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, refuse("it unpacks to more bytes than a layer of its size may")
	}
	return n, err
}

func (u *unpacker) entries(r *tar.Reader) error {
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			if errors.Is(err, tar.ErrHeader) {
				return refuse("%v", err)
			}
			return err
		}
		if err := u.entry(h, r); err != nil {
			return fmt.Errorf("entry %q: %w", printable(h.Name), err)
		}
	}
}

// entry checks one entry and writes it.
func (u *unpacker) entry(h *tar.Header, r io.Reader) error {
	if err := u.take(h); err != nil {
		return err
	}
	name, err := inside(h.Name)
	if err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeXGlobalHeader:
		return nil
	case tar.TypeChar, tar.TypeBlock:
		u.leave(h.Name, "device")
		return nil
	case tar.TypeGNUSparse: // read with its holes filled
		h.Typeflag = tar.TypeReg
	case tar.TypeLink:
		if h.Linkname, err = inside(h.Linkname); err != nil {
			return err
		}
	//nolint:staticcheck // old tars have RegA
	case tar.TypeReg, tar.TypeRegA, tar.TypeDir, tar.TypeSymlink, tar.TypeFifo:
	default:
		return refuse("got type %q", h.Typeflag)
	}
	if name == "." { // the root's own mode and owner are those of its mount
		if h.Typeflag != tar.TypeDir {
			return refuse("got something else than a folder for the root")
		}
		return nil
	}
	h.Name = name
	if h.Typeflag == tar.TypeDir && u.form.plain() {
		h.Mode |= 0o700 // or this user's other programs could not remove it: a NodeManager empties its folders so
	}
	u.attributes(h)
	if u.form.plain() { // all belongs to this user; umoci would note the owners in attributes that are never read
		h.Uid, h.Gid = 0, 0
	}
	if base, ok := strings.CutPrefix(path.Base(name), whiteoutPrefix); ok {
		return u.whiteout(path.Dir(name), base)
	}
	if err := u.parents(name); err != nil {
		return err
	}
	if h.Typeflag != tar.TypeDir && u.folders[name] { // it goes, and all below it
		clear(u.folders)
	}
	if err := u.extractor.UnpackEntry(u.dir, h, r); err != nil {
		return err
	}
	if h.Typeflag == tar.TypeDir && u.whiteouts[name] {
		return u.opaque(name)
	}
	return nil
}

// take counts an entry against the limits. A sparse file counts with its holes, for it is written so.
func (u *unpacker) take(h *tar.Header) error {
	if err := u.count(1); err != nil {
		return err
	}
	if h.Size < 0 || h.Size > u.maxBytes-u.bytes {
		return refuse("got more than %d bytes in a layer", u.maxBytes)
	}
	u.bytes += h.Size
	if len(h.Name) > maxPath || len(h.Linkname) > maxPath {
		return refuse("got a path of more than %d bytes", maxPath)
	}
	if strings.Count(h.Name, "/") > maxDepth || h.Typeflag == tar.TypeLink &&
		strings.Count(h.Linkname, "/") > maxDepth {
		return refuse("got a path of more than %d folders", maxDepth)
	}
	return nil
}

// count adds files and folders: a single name may make thousands of folders.
func (u *unpacker) count(n int) error {
	if u.files += n; u.files > u.maxFiles {
		return refuse("got more than %d files and folders in a layer", u.maxFiles)
	}
	return nil
}

// inside makes a path relative to the layer's root. An absolute one means that root; one that climbs out is refused.
func inside(name string) (string, error) {
	cleaned := path.Clean(strings.TrimLeft(name, "/"))
	if cleaned == "." || fs.ValidPath(cleaned) && !strings.ContainsRune(cleaned, 0) {
		return cleaned, nil
	}
	if !strings.HasPrefix(cleaned, "..") && !strings.ContainsRune(cleaned, 0) { // not UTF-8: a file name all the same
		return cleaned, nil
	}
	return "", refuse("path %q: got one that leads outside, want one below the root", printable(name))
}

// attributes keeps user.* and file capabilities. Overlayfs's own marks would let a layer redirect a folder to another
// one; security labels and trusted.* are the host's.
func (u *unpacker) attributes(h *tar.Header) {
	size := 0
	for _, name := range slices.Sorted(maps.Keys(h.Xattrs)) { //nolint:staticcheck // umoci reads this field
		value := h.Xattrs[name] //nolint:staticcheck // umoci reads this field
		size += len(name) + len(value)
		own := strings.HasPrefix(name, "user.overlay.") || strings.HasPrefix(name, "user.rootlesscontainers")
		if size <= maxXattrs && (name == "security.capability" || strings.HasPrefix(name, "user.") && !own) {
			continue
		}
		u.leave(h.Name, "attribute "+name)
		delete(h.Xattrs, name) //nolint:staticcheck // umoci reads this field
	}
}

func (u *unpacker) leave(name, why string) {
	if u.leftOut++; len(u.left) < maxTold {
		u.left = append(u.left, printable(name)+" ("+printable(why)+")")
	}
}

// Names of the OCI Image Specification 1.1, layer.md.
const (
	whiteoutPrefix = ".wh."
	opaqueName     = ".wh..opq" // after the prefix
	aufsPrefix     = ".wh."     // after the prefix: notes of aufs for itself
)

// whiteout hides names that lower layers have. It must not hide what this layer itself brings, wherever it stands
// in the tar (layer.md, whiteouts), so a folder of this layer becomes opaque and a file stays.
func (u *unpacker) whiteout(dir, base string) error {
	switch {
	case base == opaqueName:
		return u.opaque(dir)
	case strings.HasPrefix(base, aufsPrefix):
		return nil
	case base == "" || base == "." || base == "..":
		return refuse("got a whiteout of no name")
	}
	name := path.Join(dir, base)
	if err := u.parents(name); err != nil {
		return err
	}
	info, err := u.root.Lstat(name)
	switch {
	case err == nil && info.IsDir():
		return u.opaque(name)
	case err == nil:
		return nil
	}
	u.whiteouts[name] = true
	return u.extractor.UnpackEntry(u.dir, &tar.Header{Name: path.Join(dir, whiteoutPrefix+base), Typeflag: tar.TypeReg},
		strings.NewReader(""))
}

// opaque hides what lower layers have in a folder. The layer's root is marked too, for the merge of the layers.
func (u *unpacker) opaque(dir string) error {
	if dir == "." {
		return unix.Lsetxattr(u.dir, u.form.opaqueXattr(), []byte("y"), 0)
	}
	if err := u.parents(path.Join(dir, "x")); err != nil {
		return err
	}
	return u.extractor.UnpackEntry(u.dir, &tar.Header{
		Name:     path.Join(dir, whiteoutPrefix+opaqueName),
		Typeflag: tar.TypeReg,
	}, strings.NewReader(""))
}

// parents makes the folders above a name that the layer has no entries for, readable for everybody whatever the umask.
// A folder that this layer has hidden before comes back empty.
func (u *unpacker) parents(name string) error {
	if u.folders[path.Dir(name)] {
		return nil
	}
	for i := range len(name) {
		if name[i] != '/' || u.folders[name[:i]] {
			continue
		}
		dir := name[:i]
		info, err := u.root.Lstat(dir)
		if err == nil && !isWhiteout(info) {
			if info.IsDir() {
				u.folders[dir] = true
			}
			continue
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // below a link: umoci follows it inside the root
			return u.count(strings.Count(name[i:], "/"))
		}
		if err := u.count(1); err != nil {
			return err
		}
		h := &tar.Header{Name: dir, Typeflag: tar.TypeDir, Mode: 0o755}
		if err := u.extractor.UnpackEntry(u.dir, h, strings.NewReader("")); err != nil {
			return err
		}
		u.folders[dir] = true
		if u.whiteouts[dir] {
			if err := u.opaque(dir); err != nil {
				return err
			}
		}
	}
	return nil
}
