package packages

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/muster-agent/muster/shim/store"
)

// kind is how an archive is packed.
type kind string

const (
	kindZip  kind = "zip"
	kindTar  kind = "tar"
	kindGzip kind = "tar.gz"
	kindZstd kind = "tar.zst"
)

// named are the endings that say what an archive is; the first of a kind is its usual one.
var named = []struct {
	ending string
	kind   kind
}{
	{".zip", kindZip},
	{".tar.gz", kindGzip},
	{".tgz", kindGzip},
	{".tar", kindTar},
	{".tar.zst", kindZstd},
	{".tzst", kindZstd},
	{".jar", kindZip},
}

// endings are the archive names that Open understands.
func endings() []string {
	var all []string
	for _, n := range named {
		all = append(all, n.ending)
	}
	return all
}

func kindOfName(name string) (kind, bool) {
	for _, n := range named {
		if strings.HasSuffix(name, n.ending) {
			return n.kind, true
		}
	}
	return "", false
}

// BaseName is the last element of a path without the ending of an archive.
func BaseName(path string) string {
	name := filepath.Base(path)
	for _, e := range endings() {
		if trimmed, ok := strings.CutSuffix(name, e); ok {
			return trimmed
		}
	}
	return name
}

// block is tar's unit, and as much as is looked at to tell what a file is.
const block = 512

// foreign are archives that people have and that are not read here.
var foreign = []struct{ start, what string }{
	{"\xfd7zXZ\x00", "an xz file"},
	{"BZh", "a bzip2 file"},
	{"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"},
	{"Rar!\x1a\x07", "a RAR archive"},
	{"!<arch>\n", "an ar archive or Debian package"},
	{"\x7fELF", "a program"},
	{"<", "a text, perhaps a web page"},
	{"{", "a JSON text"},
}

// kindOfContent tells an archive by its first bytes; what says in words what there is instead.
func kindOfContent(head []byte) (k kind, what string) {
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return kindZip, ""
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return kindGzip, ""
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}), skippable(head):
		return kindZstd, ""
	case isTar(head):
		return kindTar, ""
	case len(head) == 0:
		return "", "an empty file"
	}
	for _, f := range foreign {
		if bytes.HasPrefix(head, []byte(f.start)) {
			return "", f.what
		}
	}
	return "", "content of another kind"
}

// skippable is a frame that some packers write before the first of zstd (RFC 8878, 3.1.2).
func skippable(head []byte) bool {
	return len(head) >= 4 && head[0]&0xf0 == 0x50 && head[1] == 0x2a && head[2] == 0x4d && head[3] == 0x18
}

// isTar looks at the header's checksum, which tars of all ages have; an empty tar is zeros alone.
func isTar(head []byte) bool {
	if len(head) < block {
		return false
	}
	head = head[:block]
	if bytes.Equal(head, make([]byte, block)) {
		return true
	}
	const at, size = 148, 8 // the checksum's own field counts as blanks
	var sum int64
	for i, b := range head {
		if i >= at && i < at+size {
			b = ' '
		}
		sum += int64(b)
	}
	want, err := strconv.ParseInt(strings.Trim(string(head[at:at+size]), " \x00"), 8, 64)
	return err == nil && want == sum
}

// archive is an opened archive file. All is read from the one handle: a file that is put under the name meanwhile
// changes nothing.
type archive struct {
	*os.File
	name string // for errors and for the ending
	kind kind
	size int64
}

// documents are the files of a package that are taken for the package itself.
func documents() []string {
	return []string{
		"metainfo.json", "metainfo.xml", "appConfig.json", "resources.json", "appConfig.default.json",
		"resources.default.json", "appConfig-default.json", "resources-default.json",
	}
}

// openArchive tells what the file is. name is what it is called where its path does not say.
func openArchive(path, name string) (_ *archive, err error) {
	if name == "" {
		name = path
	}
	// a pipe under that name would wait for somebody to write to it
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, refuse(notAnArchive, "got a "+KindName(info.Mode()), "an archive file")
	}
	head := make([]byte, block)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	is, what := kindOfContent(head[:n])
	says, known := kindOfName(name)
	switch {
	case is == "" && slices.Contains(documents(), filepath.Base(path)):
		return nil, refuse(notAnArchive, "got a file of a package", "the package: its folder, "+filepath.Dir(path))
	case is == "":
		return nil, refuse(notAnArchive, "got "+what, "an archive: pack it as one of "+strings.Join(endings(), " "))
	case known && says != is:
		return nil, refuse(wrongName, fmt.Sprintf("the name says %s, the content is %s", says, is),
			fmt.Sprintf("both alike: name it .%s, or pack it as %s", is, says))
	}
	return &archive{File: f, name: name, kind: is, size: info.Size()}, nil
}

// copied gives the same archive in a file that has no name, and closes this one.
func (a *archive) copied(ctx context.Context) (_ *archive, err error) {
	defer func() { err = errors.Join(err, a.Close()) }()
	f, err := os.CreateTemp("", "muster-package-")
	if err != nil {
		return nil, err
	}
	err = os.Remove(f.Name())
	if err == nil {
		_, err = io.Copy(f, store.Reader(ctx, io.NewSectionReader(a, 0, a.size)))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	info, err := f.Stat() // one that shrank meanwhile is torn
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &archive{File: f, name: a.name, kind: a.kind, size: info.Size()}, nil
}

// digest is the sha256 of the archive's bytes, in hex.
func (a *archive) digest(ctx context.Context) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, store.Reader(ctx, io.NewSectionReader(a, 0, a.size))); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// maxWindow bounds what a zstd frame may ask to be kept in memory, in bytes; `zstd --ultra -22` asks for 128 MiB.
const maxWindow = 128 << 20

// stream is the tar in the archive, read from its start and bounded by the budget.
func (a *archive) stream(ctx context.Context, b *budget) (_ *boundedReader, done func(), err error) {
	packed := &counter{r: store.Reader(ctx, io.NewSectionReader(a, 0, a.size))}
	b.packed = func() int64 { return packed.n }
	var plain io.Reader = packed
	done = func() {}
	switch a.kind {
	case kindGzip:
		if plain, err = gzip.NewReader(packed); err != nil {
			return nil, nil, torn(err)
		}
	case kindZstd:
		z,
			err := zstd.NewReader(packed, zstd.WithDecoderMaxWindow(maxWindow),
			zstd.WithDecoderMaxMemory(maxWindow+maxWindow/2),
			zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, nil, torn(err)
		}
		plain, done = z, z.Close
	case kindTar, kindZip:
	}
	return &boundedReader{r: plain, b: b}, done, nil
}

// torn names an archive that its unpacker gives up on.
func torn(err error) error {
	var refused *RefusedError
	var ours *os.PathError
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.As(err, &refused), errors.As(err, &ours),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded),
		errors.Is(err, zstd.ErrWindowSizeTooSmall):
		return refuse(largeWindow, fmt.Sprintf("got a zstd frame of another window (%v)", err),
			fmt.Sprintf("one of at most %d MiB: pack it with zstd -19 or less, without --long", maxWindow>>20))
	}
	return &RefusedError{
		Reason: tornArchive, Got: fmt.Sprintf("it breaks off or is damaged (%v)", err),
		Want: "it whole: fetch or pack it again",
	}
}

// counter tells how much has been read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
