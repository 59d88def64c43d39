package packages

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// item is an entry of an archive that a test makes.
type item struct {
	name, text string
	kind       byte // tar's; a zip gets the mode that says the same
	link       string
	mode       int64
}

func file(name, text string) item {
	return item{name: name, text: text, kind: tar.TypeReg, mode: 0o644}
}
func folder(name string) item { return item{name: name, kind: tar.TypeDir, mode: 0o755} }
func link(name, to string) item {
	return item{name: name, link: to, kind: tar.TypeSymlink, mode: 0o777}
}

func hard(name, to string) item { return item{name: name, link: to, kind: tar.TypeLink, mode: 0o644} }

func special(name string, kind byte) item {
	return item{name: name, kind: kind, mode: 0o666}
}

func makeTar(t testing.TB, items ...item) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, i := range items {
		h := &tar.Header{Name: i.name, Typeflag: i.kind, Linkname: i.link, Mode: i.mode, Size: int64(len(i.text))}
		must(t, w.WriteHeader(h))
		_, err := w.Write([]byte(i.text))
		must(t, err)
	}
	must(t, w.Close())
	return b.Bytes()
}

func makeZip(t testing.TB, items ...item) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, i := range items {
		h := &zip.FileHeader{Name: i.name, Method: zip.Deflate}
		mode := fs.FileMode(i.mode).Perm()
		text := i.text
		switch i.kind {
		case tar.TypeSymlink:
			mode, text = mode|fs.ModeSymlink, i.link
		case tar.TypeFifo:
			mode |= fs.ModeNamedPipe
		case tar.TypeChar:
			mode |= fs.ModeDevice | fs.ModeCharDevice
		case tar.TypeBlock:
			mode |= fs.ModeDevice
		case tar.TypeDir:
			h.Name = strings.TrimSuffix(h.Name, "/") + "/"
			mode |= fs.ModeDir
		}
		h.SetMode(mode)
		w, err := z.CreateHeader(h)
		must(t, err)
		if text != "" {
			_, err = w.Write([]byte(text))
			must(t, err)
		}
	}
	must(t, z.Close())
	return b.Bytes()
}

func gz(t testing.TB, plain []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(plain)
	must(t, errors.Join(err, w.Close()))
	return b.Bytes()
}

func zst(t testing.TB, plain []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b)
	must(t, err)
	_, err = w.Write(plain)
	must(t, errors.Join(err, w.Close()))
	return b.Bytes()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// flip gives a copy with one byte changed.
func flip(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 0x40
	return b
}

// patched is a zip in which each place of a text is another text of the same length: central directory and local header.
func patched(b []byte, old, now string) []byte {
	return bytes.ReplaceAll(b, []byte(old), []byte(now))
}

// stated is a zip whose one entry states another unpacked size than it has, in its directory.
func stated(b []byte, size uint32) []byte {
	b = bytes.Clone(b)
	at := bytes.LastIndex(b, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(b[at+24:], size)
	return b
}

// flagged is a zip whose one entry has a flag or another method in its directory.
func flagged(b []byte, offset int, value uint16) []byte {
	b = bytes.Clone(b)
	at := bytes.LastIndex(b, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint16(b[at+offset:], value)
	return b
}

// overlapping is a zip in which many directory entries share the bytes of one file.
func overlapping(t testing.TB, n int, text string) []byte {
	t.Helper()
	one := makeZip(t, file("00000000", text))
	start := bytes.Index(one, []byte("PK\x01\x02"))
	end := bytes.LastIndex(one, []byte("PK\x05\x06"))
	var b bytes.Buffer
	b.Write(one[:start])
	for i := range n {
		b.Write(patched(one[start:end], "00000000", fmt.Sprintf("%08d", i)))
	}
	tail := bytes.Clone(one[end:])
	binary.LittleEndian.PutUint16(tail[8:], uint16(n))
	binary.LittleEndian.PutUint16(tail[10:], uint16(n))
	binary.LittleEndian.PutUint32(tail[12:], uint32(b.Len()-start))
	b.Write(tail)
	return b.Bytes()
}

// noise is what no packer makes smaller.
func noise(n int) string {
	b := make([]byte, n)
	if _, err := rand.NewChaCha8([32]byte{1}).Read(b); err != nil {
		panic(err)
	}
	return string(b)
}

// summed mends the checksum of a tar's first header.
func summed(b []byte) []byte {
	b = bytes.Clone(b)
	copy(b[148:156], "        ")
	sum := 0
	for _, c := range b[:block] {
		sum += int(c)
	}
	copy(b[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

// window is a zstd frame of one raw block that asks for 256 MiB to be kept (RFC 8878, 3.1.1).
func window(text []byte) []byte {
	head := uint32(len(text))<<3 | 1
	return append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 18 << 3, byte(head), byte(head >> 8), byte(head >> 16)}, text...)
}

// small limits make small bombs; each case goes beyond one of them.
var small = Limits{Files: 64, Bytes: 8 << 20, Ratio: 50, Free: 1 << 20, Depth: 16}

// hostile are archives of which none may be taken. The name's ending says how each is packed.
func hostile(t testing.TB) []struct {
	name  string
	bytes []byte
	why   reason
} {
	zeros := strings.Repeat("\x00", 4<<20)
	var crowd []item
	for i := range 65 {
		crowd = append(crowd, file(fmt.Sprintf("f%d", i), ""))
	}
	deep := strings.Repeat("d/", 17) + "f"
	plain := makeTar(t, file("a", strings.Repeat("text ", 1000)))
	one := makeZip(t, file("a", strings.Repeat("text ", 1000)))
	return []struct {
		name  string
		bytes []byte
		why   reason
	}{
		{"up.tar", makeTar(t, file("../escaped", "x")), outsidePath},
		{"up.tar.gz", gz(t, makeTar(t, file("../escaped", "x"))), outsidePath},
		{"up.tar.zst", zst(t, makeTar(t, file("../escaped", "x"))), outsidePath},
		{"up.zip", makeZip(t, file("../escaped", "x")), outsidePath},
		{"up-and-back.tar", makeTar(t, file("a/../../out/escaped", "x")), outsidePath},
		{"up-inside.zip", makeZip(t, file("a/../b", "x")), outsidePath},
		{"up-folder.tar", makeTar(t, folder("../escaped")), outsidePath},
		{"absolute.tar.gz", gz(t, makeTar(t, file("/tmp/escaped", "x"))), absolutePath},
		{"absolute.zip", makeZip(t, file("/tmp/escaped", "x")), absolutePath},
		{"absolute-double.tar", makeTar(t, file("//tmp/escaped", "x")), absolutePath},
		{"backslash-up.zip", makeZip(t, file(`..\escaped`, "x")), backslash},
		{"backslash.tar", makeTar(t, file(`a\..\..\escaped`, "x")), backslash},
		{"drive.zip", makeZip(t, file(`C:\escaped`, "x")), backslash},
		{"nul.zip", patched(makeZip(t, file("a#/../escaped", "x")), "a#/", "a\x00/"), badName},
		{"nul-pax.tar", patched(makeTar(t, file(strings.Repeat("n", 120)+"é#", "x")), "é#", "é\x00"), tornArchive},
		{"no-name.zip", makeZip(t, file("", "x")), badName},
		{"latin1.tar", summed(patched(makeTar(t, file("a##", "x")), "a##", "a\xe9#")), badName},
		{"latin1.zip", patched(makeZip(t, file("a##", "x")), "a##", "a\xe9#"), badName},
		{"long-name.tar.gz", gz(t, makeTar(t, file(strings.Repeat("n", 256), "x"))), longName},
		{"long-path.zip", makeZip(t, file(strings.Repeat("n/", 1025)+"f", "x")), longName},
		{"deep.tar", makeTar(t, file(deep, "x")), tooDeep},
		{"deep.zip", makeZip(t, file(deep, "x")), tooDeep},
		{"root-is-file.tar", makeTar(t, file(".", "x")), changedKind},

		{"device.tar", makeTar(t, special("null", tar.TypeChar)), badKind},
		{"block-device.tar.zst", zst(t, makeTar(t, special("sda", tar.TypeBlock))), badKind},
		{"pipe.tar", makeTar(t, special("pipe", tar.TypeFifo)), badKind},
		{"device.zip", makeZip(t, special("null", tar.TypeChar)), badKind},
		{"pipe.zip", makeZip(t, special("pipe", tar.TypeFifo)), badKind},
		{"unknown-type.tar", makeTar(t, special("x", 'Z')), badKind},
		{"full-folder.zip", patched(makeZip(t, file("aa#", "x")), "aa#", "aa/"), badKind},

		{"link-absolute.tar", makeTar(t, link("l", "/etc/passwd")), badLink},
		{"link-up.tar.gz", gz(t, makeTar(t, link("a/l", "../../escaped"))), badLink},
		{"link-up.zip", makeZip(t, link("a/l", "../../escaped")), badLink},
		{"link-absolute.zip", makeZip(t, link("l", "/etc")), badLink},
		{"link-long.zip", makeZip(t, link("l", strings.Repeat("x", 5000))), badLink},
		{"link-to-nothing.zip", makeZip(t, link("l", "")), badLink},
		{"link-round.tar", makeTar(t, link("round", "round")), badLink},
		{"link-chain.tar", makeTar(t, link("a/b/c", "../../d"), file("d/x", ""), link("a/b/up", "c/../../canary")), badLink},
		{"link-chain.zip", makeZip(t, folder("d"), link("a/later", "../d"), link("a/out", "later/../..")), badLink},
		{"link-then-below.tar", makeTar(t, link("l", "d"), folder("d"), file("l/x", "x")), belowLink},
		{"link-then-below.zip", makeZip(t, folder("d"), link("l", "d"), file("l/x", "x")), belowLink},
		{"link-replaced.tar", makeTar(t, link("l", "x"), file("l", "x")), changedKind},
		{"folder-to-link.tar", makeTar(t, folder("d"), link("d", ".")), changedKind},
		{"implied-to-link.tar.zst", zst(t, makeTar(t, file("d/x", "x"), link("d", "."))), changedKind},
		{"file-to-folder.tar", makeTar(t, file("d", "x"), file("d/x", "x")), changedKind},
		{"folder-to-file.zip", makeZip(t, folder("d"), file("d", "x")), changedKind},
		{"twice.zip", makeZip(t, file("a", "good"), file("./a", "bad")), fileTwice},

		{"hard-absolute.tar", makeTar(t, hard("h", "/etc/passwd")), absolutePath},
		{"hard-up.tar", makeTar(t, hard("h", "../canary/secret")), outsidePath},
		{"hard-to-link.tar", makeTar(t, file("f", "x"), link("l", "f"), hard("h", "l")), badHardLink},
		{"hard-to-nothing.tar", makeTar(t, hard("h", "later"), file("later", "x")), badHardLink},
		{"hard-to-folder.tar", makeTar(t, folder("d"), hard("h", "d")), badHardLink},
		{"hard-to-itself.tar", makeTar(t, file("f", "x"), hard("f", "./f")), badHardLink},

		{"bomb.tar.gz", gz(t, makeTar(t, file("z", zeros))), bomb},
		{"bomb.tar.zst", zst(t, makeTar(t, file("z", zeros))), bomb},
		{"bomb.zip", makeZip(t, file("z", zeros)), bomb},
		{"bomb-that-states-little.zip", stated(makeZip(t, file("z", zeros)), 10), otherSize},
		{"bomb-linked.zip", makeZip(t, link("l", "z"), file("z", zeros)), bomb},
		{"bomb-after-the-end.tar.gz", gz(t, append(makeTar(t, file("a", "x")), zeros...)), bomb},
		{"overlapping.zip", overlapping(t, 60, zeros[:1<<20]), bomb},
		{"overlapping-noise.zip", overlapping(t, 40, noise(256<<10)), tooManyBytes},
		{"large.tar", makeTar(t, file("z", zeros), file("y", zeros), file("x", "x")), tooManyBytes},
		{"crowd.tar", makeTar(t, crowd...), tooManyFiles},
		{"crowd.zip", makeZip(t, crowd...), tooManyFiles},
		{"implied-crowd.tar", makeTar(t, file("a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/f", ""), file("b/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/f", ""),
			file("c/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/f", ""), file("d/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/f", "")), tooManyFiles},
		{"states-more.zip", stated(one, 6000), otherSize},
		{"window.tar.zst", window(plain), largeWindow},

		{"second-tar.tar", append(bytes.Clone(plain), plain...), trailingData},
		{"cut.tar.gz", gz(t, plain)[:40], tornArchive},
		{"cut.tar.zst", zst(t, plain)[:40], tornArchive},
		{"cut-between.tar", plain[:len(plain)-2*block], tornArchive},
		{"cut.zip", one[:len(one)-30], tornArchive},
		{"flipped.tar", flip(plain, 20), notAnArchive},
		{"flipped.tar.gz", flip(gz(t, plain), len(gz(t, plain))-6), tornArchive},
		{"flipped.tar.zst", flip(zst(t, plain), len(zst(t, plain))-2), tornArchive},
		{"flipped.zip", flip(one, 50), tornArchive},
		{"no-tar.tar.gz", gz(t, []byte(strings.Repeat("no tar at all ", 100))), tornArchive},
		{"encrypted.zip", flagged(one, 8, 1), encrypted},
		{"method.zip", flagged(one, 10, 12), unknownMethod},

		{"tar-called.zip", plain, wrongName},
		{"zip-called.tar", one, wrongName},
		{"gzip-called.tar.zst", gz(t, plain), wrongName},
		{"web-page.zip", []byte("<html>404</html>"), notAnArchive},
		{"xz-called.tar.gz", []byte("\xfd7zXZ\x00rest"), notAnArchive},
		{"empty.zip", nil, notAnArchive},
	}
}

func TestHostileArchives(t *testing.T) {
	all := hostile(t)
	if len(all) < 30 {
		t.Fatalf("got %d archives, want 30", len(all))
	}
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			archive := filepath.Join(t.TempDir(), c.name)
			must(t, os.WriteFile(archive, c.bytes, 0o600))
			base := canaries(t)
			before := snapshot(t, base)
			_, err := Extract(t.Context(), archive, filepath.Join(base, "in", "out"), ExtractOptions{Limits: small})
			var refused *RefusedError
			if !errors.As(err, &refused) {
				t.Fatalf("got %v, want it refused: %s", err, c.why)
			}
			if refused.Reason != c.why || !errors.Is(err, ErrRefused) {
				t.Errorf("got %q (%v), want %q", refused.Reason, err, c.why)
			}
			if !strings.Contains(err.Error(), archive) || refused.Got == "" || refused.Want == "" {
				t.Errorf("got %q, want the archive, what is there and what would do", err)
			}
			if after := snapshot(t, base); !maps.Equal(before, after) {
				t.Errorf("written outside or left behind: got %v, want %v", after, before)
			}
		})
	}
}

// Open takes no more than Extract does, where its wider limits allow the difference.
func TestOpenRefusesHostileArchives(t *testing.T) {
	wide := map[reason]bool{tooManyFiles: true, tooManyBytes: true, bomb: true, tooDeep: true}
	for _, c := range hostile(t) {
		if wide[c.why] || c.name == "states-more.zip" || c.name == "flipped.zip" || c.name == "bomb-that-states-little.zip" {
			continue // read in place: seen when the file is read
		}
		t.Run(c.name, func(t *testing.T) {
			base := canaries(t)
			t.Setenv("TMPDIR", filepath.Join(base, "in"))
			archive := filepath.Join(t.TempDir(), c.name)
			must(t, os.WriteFile(archive, c.bytes, 0o600))
			before := snapshot(t, base)
			_, err := Open(archive)
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.Reason != c.why {
				t.Errorf("got %v, want %q", err, c.why)
			}
			if after := snapshot(t, base); !maps.Equal(before, after) {
				t.Errorf("written outside or left behind: got %v, want %v", after, before)
			}
		})
	}
}

// canaries is a tree in which whatever escapes from in/out would change something.
func canaries(t testing.TB) string {
	t.Helper()
	base := t.TempDir()
	mustWrite(t, filepath.Join(base, "canary", "secret"), "untouched")
	mustWrite(t, filepath.Join(base, "in", "canary"), "untouched")
	mustWrite(t, filepath.Join(base, "in", "escaped.not"), "untouched")
	return base
}

// snapshot is what a tree holds: names, modes, contents, links.
func snapshot(t testing.TB, base string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := []byte(nil)
		if d.Type().IsRegular() {
			if text, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		to, _ := os.Readlink(path)
		all[path] = fmt.Sprintf("%s %q %q", info.Mode(), text, to)
		return nil
	}))
	return all
}
