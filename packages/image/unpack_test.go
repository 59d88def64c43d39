package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	ispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/tests/servers/registryserver"
)

// unpacked is a layer laid out beside something that is not its own.
type unpacked struct {
	dir     string // the layer
	outside string // the folder around it
	left    []string
	err     error
	before  map[string]string // what was outside
}

func unpackTar(t testing.TB, content []byte, maxFiles int, maxBytes int64) unpacked {
	t.Helper()
	outside := t.TempDir()
	u := unpacked{outside: outside, dir: filepath.Join(outside, "layer", "fs")}
	if err := errors.Join(
		os.MkdirAll(u.dir, 0o755), os.Mkdir(filepath.Join(outside, "canary"), 0o755),
		os.WriteFile(filepath.Join(outside, "canary", "file"), []byte("sings"), 0o644),
	); err != nil {
		t.Fatal(err)
	}
	u.before = tree(t, outside)
	f, err := formHere(outside)
	if err != nil {
		t.Fatal(err)
	}
	l := registryserver.Pack(t, ispec.MediaTypeImageLayer, content)
	by := unpacker{form: f, maxFiles: maxFiles, maxBytes: maxBytes}
	u.err = by.unpack(t.Context(), bytes.NewReader(content), layerRef{Descriptor: l.Descriptor, diffID: l.DiffID, packed: plainTar}, u.dir)
	u.left = by.left
	t.Cleanup(func() {
		if err := f.removeAll(u.dir); err != nil {
			t.Error(err)
		}
	})
	return u
}

// same fails the test when something outside the layer has changed.
func (u unpacked) same(t testing.TB) {
	t.Helper()
	if diff := cmp.Diff(u.before, tree(t, u.outside)); diff != "" {
		t.Errorf("outside of the layer (-before +after):\n%s", diff)
	}
}

// tree is all that is below a folder but a layer's content: name → mode, owner, links and content.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name == filepath.Join(dir, "layer", "fs") {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		stat := info.Sys().(*syscall.Stat_t) //nolint:forcetypeassert // os on Linux
		text := ""
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			text = string(b)
		}
		all[name] = fmt.Sprintf("%s %d:%d %d %q", info.Mode(), stat.Uid, stat.Gid, stat.Nlink, text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

const many, large = 1000, 1 << 20 // generous limits for a test

func TestHostileLayersStayInside(t *testing.T) {
	canary := "/../../../../../../../../canary" // each ".." of an absolute link is clamped at the root
	shut := "dt---------"
	if os.Geteuid() != 0 {
		shut = "dtrwx------" // its owner may remove it
	}
	for _, c := range []struct {
		name  string
		files []registryserver.File
		want  error             // nil: unpacked
		have  map[string]string // what is in the layer then: name → content, or "-> target", or a mode
	}{
		{name: "a name that climbs", files: []registryserver.File{file("../../canary/file", "x")}, want: ErrRefused},
		{name: "a name that climbs later", files: []registryserver.File{file("a/b/../../../../canary/new", "x")}, want: ErrRefused},
		{name: "a name that only seems to climb", files: []registryserver.File{file("a/b/../c", "x"), file("..a", "y")}, have: map[string]string{"a/c": "x", "..a": "y"}},
		{name: "an absolute name", files: []registryserver.File{file("/etc/x", "x")}, have: map[string]string{"etc/x": "x"}},
		{
			name:  "written through a relative link",
			files: []registryserver.File{entry(tar.TypeSymlink, "d", "../../canary"), file("d/file", "x")},
			have:  map[string]string{"d": "-> ../../canary", "canary/file": "x"},
		},
		{
			name:  "written through an absolute link",
			files: []registryserver.File{entry(tar.TypeSymlink, "d", canary), file("d/file", "x")},
			have:  map[string]string{"canary/file": "x"},
		},
		{
			name: "written through a chain of links",
			files: []registryserver.File{
				entry(tar.TypeSymlink, "a", ".."), entry(tar.TypeSymlink, "b", "a/.."), entry(tar.TypeSymlink, "c", "b/canary"), file("c/file", "x"),
			},
			have: map[string]string{"canary/file": "x"},
		},
		{
			name:  "a file in place of a link",
			files: []registryserver.File{entry(tar.TypeSymlink, "f", "../../canary/file"), file("f", "x")},
			have:  map[string]string{"f": "x"},
		},
		{
			name:  "a folder in place of a link",
			files: []registryserver.File{entry(tar.TypeSymlink, "d", "../../canary"), entry(tar.TypeDir, "d", ""), file("d/file", "x")},
			have:  map[string]string{"d/file": "x"},
		},
		{name: "a hard link that climbs", files: []registryserver.File{entry(tar.TypeLink, "h", "../../canary/file")}, want: ErrRefused},
		{name: "a hard link to an absolute name", files: []registryserver.File{entry(tar.TypeLink, "h", "/etc/passwd")}, want: fs.ErrNotExist},
		{
			name:  "a hard link through a link",
			files: []registryserver.File{entry(tar.TypeSymlink, "d", "../../canary"), entry(tar.TypeLink, "h", "d/file")},
			want:  fs.ErrNotExist,
		},
		{
			name:  "a hard link to a link, written",
			files: []registryserver.File{entry(tar.TypeSymlink, "s", "../../canary/file"), entry(tar.TypeLink, "h", "s"), file("h", "x")},
			have:  map[string]string{"h": "x", "s": "-> ../../canary/file"},
		},
		{
			name:  "taken away through a link",
			files: []registryserver.File{entry(tar.TypeSymlink, "d", "../../canary"), file("d/.wh.file", "")},
			have:  map[string]string{"d": "-> ../../canary"},
		},
		{
			name:  "opaque through a link",
			files: []registryserver.File{entry(tar.TypeSymlink, "d", canary), file("d/.wh..wh..opq", "")},
			have:  map[string]string{"d": "-> " + canary},
		},
		{name: "links in a circle", files: []registryserver.File{entry(tar.TypeSymlink, "a", "b"), entry(tar.TypeSymlink, "b", "a"), file("a/x", "")}, want: syscall.ELOOP},
		{name: "a whiteout of the folder above", files: []registryserver.File{file("d/.wh...", "")}, want: ErrRefused},
		{name: "a link for the root", files: []registryserver.File{entry(tar.TypeSymlink, ".", "/etc")}, want: ErrRefused},
		{name: "the root closed", files: []registryserver.File{{Header: tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o1}}, file("a", "x")}, have: map[string]string{"a": "x"}},
		{
			name: "devices",
			files: []registryserver.File{
				{Header: tar.Header{Typeflag: tar.TypeChar, Name: "dev/mem", Devmajor: 1, Devminor: 1}},
				{Header: tar.Header{Typeflag: tar.TypeBlock, Name: "dev/sda", Devmajor: 8}},
				{Header: tar.Header{Typeflag: tar.TypeChar, Name: "etc"}}, // what overlayfs would take for a whiteout
				file("a", "x"),
			},
			have: map[string]string{"a": "x", "dev": "none", "etc": "none"},
		},
		{name: "a FIFO", files: []registryserver.File{entry(tar.TypeFifo, "p", "")}, have: map[string]string{"p": "prwxr-xr-x"}},
		{name: "setuid", files: []registryserver.File{{Header: tar.Header{Name: "su", Mode: 0o4755}}}, have: map[string]string{"su": "urwxr-xr-x"}},
		{name: "a folder without permissions", files: []registryserver.File{{Header: tar.Header{Typeflag: tar.TypeDir, Name: "d", Mode: 0o1000}}, file("d/x", "x")}, have: map[string]string{"d": shut}},
		{name: "an unknown type", files: []registryserver.File{entry('Z', "z", "")}, want: ErrRefused},
		{name: "a long name", files: []registryserver.File{file(strings.Repeat("n", 300), "")}, want: syscall.ENAMETOOLONG},
		{name: "a long path", files: []registryserver.File{file(strings.Repeat("n", 5000), "")}, want: ErrRefused},
		{name: "a name of many folders", files: []registryserver.File{file(strings.Repeat("n/", maxDepth+1)+"x", "")}, want: ErrRefused},
		{name: "many folders", files: deepNames("", 30), want: ErrRefused},
		{name: "many folders below a link", files: append([]registryserver.File{entry(tar.TypeSymlink, "l", "/m")}, deepNames("l/", 30)...), want: ErrRefused},
		{name: "an aufs note", files: []registryserver.File{file(".wh..wh.plnk/x", ""), file(".wh..wh.aufs", "")}, have: map[string]string{".wh.aufs": "none"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := unpackTar(t, registryserver.Tar(t, c.files...), many, large)
			if !errors.Is(u.err, c.want) {
				t.Errorf("got %v, want %v", u.err, c.want)
			}
			for name, want := range c.have {
				if got := have(t, filepath.Join(u.dir, name), want); got != want {
					t.Errorf("%s: got %q, want %q", name, got, want)
				}
			}
			u.same(t)
		})
	}
}

// deepNames are n files, each of them below 40 folders of its own.
func deepNames(below string, n int) []registryserver.File {
	var files []registryserver.File
	for i := range n {
		files = append(files, file(below+strings.Repeat(fmt.Sprint(i)+"/", 40)+"x", ""))
	}
	return files
}

// have describes a file as the wish does.
func have(t testing.TB, name, want string) string {
	t.Helper()
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "none"
	}
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(name)
		if err != nil {
			t.Fatal(err)
		}
		return "-> " + target
	}
	if !info.Mode().IsRegular() || strings.Contains(want, "rwx") {
		return info.Mode().String()
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestDevicesAreNamed(t *testing.T) {
	u := unpackTar(t, registryserver.Tar(t, registryserver.File{Header: tar.Header{Typeflag: tar.TypeBlock, Name: "dev/sda", Devmajor: 8}}), many, large)
	if diff := cmp.Diff([]string{"dev/sda (device)"}, u.left); u.err != nil || diff != "" {
		t.Errorf("got %v, left out (-want +got):\n%s", u.err, diff)
	}
}

func TestAttributes(t *testing.T) {
	given := map[string]string{
		"user.ok": "kept", "user.overlay.redirect": "/etc", "user.overlay.opaque": "y", "trusted.overlay.redirect": "/etc",
		"trusted.overlay.metacopy": "", "security.selinux": "x", "user.rootlesscontainers": "x",
	}
	pax := map[string]string{}
	for name, value := range given {
		pax["SCHILY.xattr."+name] = value
	}
	d := registryserver.File{Header: tar.Header{Typeflag: tar.TypeDir, Name: "d", PAXRecords: pax, Uid: 1000, Gid: 1000}}
	u := unpackTar(t, registryserver.Tar(t, d), many, large)
	if u.err != nil {
		t.Fatal(u.err)
	}
	got := make([]byte, 1024)
	n, err := unix.Llistxattr(filepath.Join(u.dir, "d"), got)
	if err != nil {
		t.Fatal(err)
	}
	if names := strings.TrimRight(string(got[:n]), "\x00"); names != "user.ok" {
		t.Errorf("got attributes %q, want user.ok alone", names)
	}
	u.same(t)
}

func TestOwners(t *testing.T) {
	u := unpackTar(t, registryserver.Tar(t, registryserver.File{Header: tar.Header{Name: "f", Uid: 1234, Gid: 5678}}), many, large)
	if u.err != nil {
		t.Fatal(u.err)
	}
	info, err := os.Lstat(filepath.Join(u.dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	stat := info.Sys().(*syscall.Stat_t) //nolint:forcetypeassert // os on Linux
	want := [2]uint32{1234, 5678}
	if os.Geteuid() != 0 {
		want = [2]uint32{uint32(os.Geteuid()), uint32(os.Getegid())}
	}
	if got := [2]uint32{stat.Uid, stat.Gid}; got != want {
		t.Errorf("owner: got %v, want %v", got, want)
	}
}

func TestBombs(t *testing.T) {
	// a header that promises more than it brings: the promise alone is refused
	var b bytes.Buffer
	if err := tar.NewWriter(&b).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "f", Size: 1 << 40}); err != nil {
		t.Fatal(err)
	}
	if u := unpackTar(t, b.Bytes(), many, large); !errors.Is(u.err, ErrRefused) {
		t.Errorf("a large file: got %v, want %v", u.err, ErrRefused)
	}
	var files []registryserver.File
	for i := range many + 1 {
		files = append(files, file(fmt.Sprint(i), ""))
	}
	if u := unpackTar(t, registryserver.Tar(t, files...), many, 2*large); !errors.Is(u.err, ErrRefused) {
		t.Errorf("many files: got %v, want %v", u.err, ErrRefused)
	}
	// zeros after the end of the tar are part of the layer too
	if u := unpackTar(t, append(registryserver.Tar(t, file("a", "a")), make([]byte, large)...), many, large); !errors.Is(u.err, ErrRefused) {
		t.Errorf("many zeros: got %v, want %v", u.err, ErrRefused)
	}
	if got := limit(defaultMaxBytes, 10<<20); got != 10<<20*maxRatio {
		t.Errorf("limit of a layer of 10 MiB: got %d, want %d", got, 10<<20*maxRatio)
	}
	if got := limit(defaultMaxBytes, 1<<60); got != defaultMaxBytes {
		t.Errorf("limit of a huge layer: got %d, want %d", got, int64(defaultMaxBytes))
	}
	if got := limit(defaultMaxBytes, 100); got != generousBytes {
		t.Errorf("limit of a tiny layer: got %d, want %d", got, generousBytes)
	}
}

// script is a layer as lines of text, KIND NAME [TARGET], so that what is tried are layers and not broken headers.
func script(text string) ([]byte, bool) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for line := range strings.Lines(text) {
		words := append(strings.Fields(line), "", "", "")
		h := tar.Header{Name: words[1], Linkname: words[2], Mode: 0o755, PAXRecords: map[string]string{}}
		kind, ok := map[string]byte{
			"file": tar.TypeReg, "dir": tar.TypeDir, "link": tar.TypeSymlink, "hard": tar.TypeLink, "pipe": tar.TypeFifo, "char": tar.TypeChar,
			"block": tar.TypeBlock, "closed": tar.TypeDir, "setuid": tar.TypeReg, "attr": tar.TypeDir,
		}[words[0]]
		if !ok {
			return nil, false
		}
		h.Typeflag = kind
		switch words[0] {
		case "closed":
			h.Mode = 0
		case "setuid":
			h.Mode = 0o6777
		case "attr":
			h.Linkname = ""
			h.PAXRecords["SCHILY.xattr."+words[2]] = "y"
		case "file":
			h.Linkname = ""
			h.Size = 1
		}
		if w.WriteHeader(&h) != nil {
			return nil, false
		}
		if h.Size > 0 {
			if _, err := w.Write([]byte("x")); err != nil {
				return nil, false
			}
		}
	}
	return b.Bytes(), w.Close() == nil
}

func FuzzLayer(f *testing.F) {
	f.Add("file a/b\nlink d ../../canary\nfile d/file\nfile d/.wh.file")
	f.Add("file ../../canary/file")
	f.Add("hard h ../../canary/file\nlink s ../../canary\nhard h s/file\nfile h")
	f.Add("file .wh.a\nfile a/.wh..wh..opq\ndir a\nchar c\nfile c/x")
	f.Add("pipe p\nfile p/x\nsetuid s\nclosed d\nfile d/x\nattr d user.overlay.opaque\nattr d trusted.overlay.redirect")
	f.Add("link a /\nlink b a/..\nfile b/canary/file\ndir b\nclosed /canary")
	f.Add("link . ..\ndir .\nfile .wh..wh..opq\nblock dev/sda")
	f.Fuzz(func(t *testing.T, text string) {
		content, ok := script(text)
		if !ok {
			return
		}
		u := unpackTar(t, content, 50, 64<<10)
		u.same(t)
		err := filepath.WalkDir(u.dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil && info.Mode()&fs.ModeDevice != 0 && !isWhiteout(info) {
				t.Errorf("%s: got a device", name)
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			t.Error(err)
		}
	})
}

// FuzzTar reads what may not be a tar at all.
func FuzzTar(f *testing.F) {
	f.Add(registryserver.Tar(f, file("a/b", "x"), entry(tar.TypeSymlink, "d", "../../canary"), file("d/file", "x")))
	f.Add(registryserver.Tar(f, registryserver.File{Header: tar.Header{Name: "s", PAXRecords: map[string]string{"SCHILY.xattr.user.a": "y"}}}))
	f.Fuzz(func(t *testing.T, content []byte) {
		u := unpackTar(t, content, 50, 64<<10)
		u.same(t)
	})
}
