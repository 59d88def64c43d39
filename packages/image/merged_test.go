package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	ispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/registryserver"
)

// pullLayers makes an image of layers given as entries.
func pullLayers(t testing.TB, layers ...[]registryserver.File) *Image {
	t.Helper()
	var packed []registryserver.Layer
	for _, files := range layers {
		packed = append(packed, gzipLayer(t, files...))
	}
	dir := registryserver.WriteLayout(t, "", registryserver.NewImage(t, ispec.ImageConfig{}, ispec.Platform{}, packed...))
	return pull(t, "oci:"+dir, Options{Cache: t.TempDir()})
}

func folder(name string) registryserver.File { return entry(tar.TypeDir, name, "") }
func link(name, target string) registryserver.File {
	return entry(tar.TypeSymlink, name, target)
}

// manyMarks are layers with every kind of mark.
func manyMarks() [][]registryserver.File {
	return [][]registryserver.File{
		{
			folder("a"), file("a/one", "1"), file("a/two", "2"), folder("b"), file("b/x", "x"), folder("c"), file("c/x", "x"),
			file("f", "f"), folder("gone"), file("gone/x", "x"), link("link", "a"), file("deep/p/q/r", "r"), folder("hid"), file("hid/old", "old"),
			folder("late"), file("late/old", "old"), link("rel", "../a/one"), link("abs", "/a/two"), link("up", "../../../../a/one"),
			link("circle", "circle"), folder("kept"), file("kept/x", "x"), folder("back"), file("back/x", "x"), link("into", "link/one"),
		},
		{
			file("a/.wh.two", ""), file("a/three", "3"), file(".wh.gone", ""), file("b/.wh..wh..opq", ""), file("b/y", "y"),
			file("c", "now a file"), file(".wh.hid", ""), folder("hid"), file("hid/new", "new"), folder("f"), file("f/in", "in"),
			folder("late"), file("late/new", "new"), file(".wh.late", ""), file(".wh.back", ""), file(".wh.nothing", ""),
		},
		{
			file("deep/p/.wh.q", ""), file("deep/p/q/new", "new"), file(".wh.c", ""), folder("gone"), file("gone/again", "again"),
			file("kept/y", "y"), folder("back"), file("back/y", "y"), file(".wh.f", ""), file("f", "a file again"),
		},
	}
}

func TestTopLevel(t *testing.T) {
	im := pullLayers(t, manyMarks()...)
	list, err := im.TopLevel()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range list {
		where := ""
		for _, p := range e.Paths {
			for i, l := range im.Layers {
				if p == filepath.Join(l, e.Name) {
					where += fmt.Sprint(i + 1)
				}
			}
		}
		got[e.Name] = strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Kind, where, e.Target))
	}
	want := map[string]string{
		"a": "dir 12", "b": "dir 2", "f": "file 3", "gone": "dir 3", "link": "symlink 1 a", "deep": "dir 13", "hid": "dir 2", "late": "dir 2",
		"rel": "symlink 1 ../a/one", "abs": "symlink 1 /a/two", "up": "symlink 1 ../../../../a/one", "circle": "symlink 1 circle",
		"kept": "dir 13", "back": "dir 3", "into": "symlink 1 link/one",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOpaqueRoot(t *testing.T) {
	im := pullLayers(t, []registryserver.File{file("a/x", "x"), file("b", "b")}, []registryserver.File{file(".wh..wh..opq", ""), file("a/y", "y")})
	list, err := im.TopLevel()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Entry{{Name: "a", Kind: Dir, Paths: []string{filepath.Join(im.Layers[1], "a")}}}, list); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOpen(t *testing.T) {
	im := pullLayers(t, append(manyMarks(), []registryserver.File{
		link("out", "/../../../../../etc/hostname"), file("etc/hostname", "inside"), entry(tar.TypeFifo, "pipe", ""),
	})...)
	for _, c := range []struct {
		name, want string
		err        error
	}{
		{name: "/a/one", want: "1"},
		{name: "/a/../a/./one", want: "1"},
		{name: "/link/one", want: "1"},
		{name: "/into", want: "1"},
		{name: "/rel", want: "1"},
		{name: "/up", want: "1"},
		{name: "/out", want: "inside"},
		{name: "/../../etc/hostname", want: "inside"},
		{name: "/b/y", want: "y"},
		{name: "/f", want: "a file again"},
		{name: "/deep/p/q/new", want: "new"},
		{name: "/abs", err: fs.ErrNotExist},
		{name: "/b/x", err: fs.ErrNotExist},
		{name: "/c", err: fs.ErrNotExist},
		{name: "/gone/x", err: fs.ErrNotExist},
		{name: "/f/in", err: fs.ErrNotExist},
		{name: "/deep/p/q/r", err: fs.ErrNotExist},
		{name: "/circle", err: syscall.ELOOP},
	} {
		f, err := im.Open(c.name)
		if !errors.Is(err, c.err) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.err)
		}
		if err != nil {
			continue
		}
		if got, err := io.ReadAll(f); string(got) != c.want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", c.name, got, err, c.want)
		}
		f.Close()
	}
	for _, name := range []string{"/a", "/pipe", "a/one"} {
		if f, err := im.Open(name); err == nil {
			f.Close()
			t.Errorf("%s: got no error, want one: it is no file, or no absolute path", name)
		}
	}
}

// view is what a child of the test is asked to mount and to tell.
type view struct {
	Layers    []string // lowest first
	Entries   []Entry
	UserXattr bool
	Dir       string // to mount in
}

const viewVariable = "MUSTER_IMAGE_TEST_VIEW"

func TestMain(m *testing.M) {
	if text := os.Getenv(viewVariable); text != "" {
		if err := tellView(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestTheKernelSeesTheSame mounts the layers in two ways, whole and folder by folder as TopLevel tells, and looks at
// both through the kernel's overlayfs.
func TestTheKernelSeesTheSame(t *testing.T) {
	im := pullLayers(t, manyMarks()...)
	list, err := im.TopLevel()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(view{Layers: im.Layers, Entries: list, UserXattr: im.UserXattr, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), viewVariable+"="+string(text))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if im.UserXattr {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		if errors.Is(err, syscall.EPERM) {
			need.Skip(t, "mounts need root, or user namespaces: "+err.Error())
		}
		t.Fatalf("view: %v: %s", err, said.String())
	}
	var seen struct{ Whole, Parts map[string]string }
	if err := json.Unmarshal(out.Bytes(), &seen); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(seen.Whole, seen.Parts); diff != "" {
		t.Errorf("(-one overlay +folder by folder):\n%s", diff)
	}
	want := map[string]string{
		"a": "d", "a/one": "f 1", "a/three": "f 3", "abs": "l /a/two", "back": "d", "back/y": "f y", "b": "d", "b/y": "f y", "circle": "l circle",
		"deep": "d", "deep/p": "d", "deep/p/q": "d", "deep/p/q/new": "f new", "f": "f a file again", "gone": "d", "gone/again": "f again",
		"hid": "d", "hid/new": "f new", "into": "l link/one", "kept": "d", "kept/x": "f x", "kept/y": "f y", "late": "d", "late/new": "f new",
		"link": "l a", "rel": "l ../a/one", "up": "l ../../../../a/one",
	}
	if diff := cmp.Diff(want, seen.Whole); diff != "" {
		t.Errorf("one overlay (-want +got):\n%s", diff)
	}
}

// tellView runs in its own mount namespace: what it mounts goes with it.
func tellView(text string) error {
	var v view
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	top := slices.Clone(v.Layers)
	slices.Reverse(top)
	whole, parts := filepath.Join(v.Dir, "whole"), filepath.Join(v.Dir, "parts")
	if err := overlay(whole, top, v.UserXattr); err != nil {
		return err
	}
	if err := os.Mkdir(parts, 0o755); err != nil {
		return err
	}
	for _, e := range v.Entries {
		at := filepath.Join(parts, e.Name)
		var err error
		switch e.Kind {
		case Dir:
			top := slices.Clone(e.Paths)
			slices.Reverse(top)
			err = overlay(at, top, v.UserXattr)
		case Symlink:
			err = os.Symlink(e.Target, at)
		case File:
			err = errors.Join(os.WriteFile(at, nil, 0o600), unix.Mount(e.Paths[0], at, "", unix.MS_BIND, ""))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	var seen struct{ Whole, Parts map[string]string }
	var err error
	if seen.Whole, err = look(whole); err != nil {
		return err
	}
	if seen.Parts, err = look(parts); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(seen)
}

// overlay mounts folders, topmost first, read-only. A single one needs a second below it.
func overlay(at string, lower []string, userXattr bool) error {
	if err := os.Mkdir(at, 0o755); err != nil {
		return err
	}
	if len(lower) == 1 {
		empty := at + ".empty"
		if err := os.Mkdir(filepath.Join(filepath.Dir(filepath.Dir(at)), filepath.Base(empty)), 0o755); err != nil {
			return err
		}
		lower = append(lower, filepath.Join(filepath.Dir(filepath.Dir(at)), filepath.Base(empty)))
	}
	options := "lowerdir=" + strings.Join(lower, ":")
	if userXattr {
		options += ",userxattr"
	}
	if err := unix.Mount("overlay", at, "overlay", unix.MS_RDONLY, options); err != nil {
		return fmt.Errorf("mount %s: %s: %w", at, options, err)
	}
	return nil
}

// look tells all names below a folder: d, f with content, l with target.
func look(dir string) (map[string]string, error) {
	seen := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			seen[rel] = "d"
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(name)
			seen[rel] = "l " + target
			return err
		default:
			b, err := os.ReadFile(name)
			seen[rel] = "f " + string(b)
			return err
		}
		return nil
	})
	return seen, err
}

func TestLayout(t *testing.T) {
	p := twoLayers(t)
	other := registryserver.NewImage(t, ispec.ImageConfig{}, ispec.Platform{}, gzipLayer(t, file("x", "x")))
	two := registryserver.WriteLayout(t, "v1", p, other)
	one := registryserver.WriteLayout(t, "", p)
	broken := registryserver.WriteLayout(t, "", p)
	if err := os.WriteFile(filepath.Join(broken, blobName(p.Layers[1].Descriptor)), p.Layers[0].Content, 0o644); err != nil {
		t.Fatal(err)
	}
	big := gzipLayer(t, file("x", "x"))
	big.Size = 1 << 50
	huge := registryserver.WriteLayout(t, "", registryserver.NewImage(t, ispec.ImageConfig{}, ispec.Platform{}, big))
	// what the agent may read and who wrote the layout may not
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, p.Config.Content, 0o600); err != nil {
		t.Fatal(err)
	}
	leading := registryserver.WriteLayout(t, "", p)
	config := filepath.Join(leading, blobName(p.Config.Descriptor))
	if err := errors.Join(os.Remove(config), os.Symlink(secret, config)); err != nil {
		t.Fatal(err)
	}
	waiting := registryserver.WriteLayout(t, "", p)
	layer := filepath.Join(waiting, blobName(p.Layers[0].Descriptor))
	if err := errors.Join(os.Remove(layer), unix.Mkfifo(layer, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, ref string
		want      error
		text      string
	}{
		{name: "a huge blob", ref: huge, want: ErrRefused, text: "got a blob of 1125899906842624 bytes"},
		{name: "a link out of it", ref: leading, text: "escapes"},
		{name: "a FIFO", ref: waiting, want: ErrRefused, text: "want a file"},
		{name: "tag", ref: two + ":v1"},
		{name: "only one", ref: one},
		{name: "no such tag", ref: two + ":v2", want: ErrNotFound},
		{name: "which", ref: two, want: ErrReference},
		{name: "no folder", ref: filepath.Join(one, "none"), want: ErrNotFound},
		{name: "layers exchanged", ref: broken, want: ErrDigest},
	} {
		t.Run(c.name, func(t *testing.T) {
			im, err := Pull(t.Context(), "oci:"+c.ref, Options{Cache: t.TempDir()})
			if c.text != "" && (err == nil || !strings.Contains(err.Error(), c.text)) || (c.want != nil || c.text == "") && !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v with %q", err, c.want, c.text)
			}
			if err != nil {
				return
			}
			if im.Digest != p.Manifest.Digest.String() {
				t.Errorf("digest: got %s, want %s", im.Digest, p.Manifest.Digest)
			}
			if err := im.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAsAPlainUser runs the tests of layers once more as a user without any right, with the binary and all folders its own.
func TestAsAPlainUser(t *testing.T) {
	need.Root(t)
	const nobody = 65534
	dir := t.TempDir()
	home, binary := filepath.Join(dir, "home"), filepath.Join(dir, "image.test")
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(binary, self, 0o755), os.Mkdir(home, 0o700), os.Chown(home, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	for parent := dir; parent != os.TempDir() && parent != "/"; parent = filepath.Dir(parent) {
		if err := os.Chmod(parent, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), binary, "-test.v", "-test.run",
		"^(TestHostileLayersStayInside|TestAttributes|TestOwners|TestTopLevel|TestOpaqueRoot|TestOpen|TestTheKernelSeesTheSame|TestLayout)$")
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOME="+home, "TMPDIR="+home, "XDG_CACHE_HOME="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || bytes.Count(out, []byte("\n--- PASS")) != 8 {
		t.Errorf("as uid %d: %v:\n%s", nobody, err, out)
	}
}
