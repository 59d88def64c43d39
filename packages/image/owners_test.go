package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	ispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/registryserver"
)

// block gives the ids below 65536 those of a block, but for 7, which is the host's.
func block(first int) Owners {
	id := func(inside int) (int, bool) {
		if inside == 7 {
			return 7, true
		}
		return first + inside, inside < 1<<16
	}
	return Owners{Key: "block", UID: id, GID: id}
}

// capText are CAP_NET_RAW, permitted and effective, as the host's root gives them.
const capText = "\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

func ownedFile(name string, mode int64, uid, gid int) registryserver.File {
	h := tar.Header{Name: name, Mode: mode, Uid: uid, Gid: gid, ModTime: time.Unix(1e9, 0)}
	return registryserver.File{Header: h, Content: name}
}

func TestWithOwners(t *testing.T) {
	need.Root(t)
	s := registryserver.Start(t, registryserver.Options{})
	marked := ownedFile("bin/marked", 0o755, 0, 0)
	marked.PAXRecords = map[string]string{"SCHILY.xattr.user.colour": "blue", "SCHILY.xattr.security.capability": capText}
	lower := gzipLayer(t, ownedFile("bin/su", 0o6755, 0, 50), marked, ownedFile("home/app/x", 0o600, 1000, 1000),
		ownedFile("home/own", 0o640, 7, 7), entry(tar.TypeLink, "bin/again", "bin/su"), entry(tar.TypeSymlink, "bin/link", "/etc/shadow"),
		entry(tar.TypeFifo, "pipe", ""), file("gone", "x"), file("sub/gone", "x"), file("not\xffutf8", "x"))
	upper := gzipLayer(t, file(".wh.gone", ""), file("sub/.wh..wh..opq", ""), file("sub/new", "new"))
	ref := s.Push("owned", "1", registryserver.NewImage(t, ispec.ImageConfig{}, ispec.Platform{}, lower, upper))
	cacheDir := t.TempDir()
	im := pull(t, ref, Options{Cache: cacheDir})
	before := map[string]string{}
	for _, l := range im.Layers {
		before[l] = listing(t, l)
	}
	const first = 1 << 20
	owned, err := im.WithOwners(t.Context(), block(first))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { owned.Close() })
	for l, want := range before {
		if diff := cmp.Diff(want, listing(t, l)); diff != "" {
			t.Errorf("the shared layer has changed:\n%s", diff)
		}
	}
	for name, want := range map[string]struct {
		uid, gid uint32
		mode     uint32
	}{
		"bin/su":      {first, first + 50, syscall.S_IFREG | 0o6755},
		"bin/again":   {first, first + 50, syscall.S_IFREG | 0o6755},
		"bin/marked":  {first, first, syscall.S_IFREG | 0o755},
		"bin/link":    {first, first, syscall.S_IFLNK | 0o777},
		"home/app/x":  {first + 1000, first + 1000, syscall.S_IFREG | 0o600},
		"home/own":    {7, 7, syscall.S_IFREG | 0o640},
		"pipe":        {first, first, syscall.S_IFIFO | 0o755},
		"not\xffutf8": {first, first, syscall.S_IFREG | 0o644},
	} {
		var is, was unix.Stat_t
		err := errors.Join(unix.Lstat(filepath.Join(owned.Layers[0], name), &is), unix.Lstat(filepath.Join(im.Layers[0], name), &was))
		if err != nil {
			t.Fatal(err)
		}
		if is.Uid != want.uid || is.Gid != want.gid || is.Mode != want.mode || is.Mtim != was.Mtim || is.Nlink != was.Nlink {
			t.Errorf("%s: got %d:%d %o of %v with %d names, want %+v, %v, %d", name, is.Uid, is.Gid, is.Mode, is.Mtim, is.Nlink, want, was.Mtim, was.Nlink)
		}
	}
	value := make([]byte, 64)
	at := filepath.Join(owned.Layers[0], "bin/marked")
	if n, err := unix.Lgetxattr(at, "user.colour", value); err != nil || string(value[:n]) != "blue" {
		t.Errorf("user.colour: got %q, %v", value[:max(n, 0)], err)
	}
	wantCaps := []byte("\x01\x00\x00\x03" + capText[4:] + "\x00\x00\x10\x00") // for the root of the container
	if n, err := unix.Lgetxattr(at, "security.capability", value); err != nil || !bytes.Equal(value[:n], wantCaps) {
		t.Errorf("capabilities: got %q, %v, want %q", value[:max(n, 0)], err, wantCaps)
	}
	if target, err := os.Readlink(filepath.Join(owned.Layers[0], "bin/link")); err != nil || target != "/etc/shadow" {
		t.Errorf("link: got %q, %v", target, err)
	}
	if _, err := owned.Open("/gone"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file under a whiteout: %v", err)
	}
	if _, err := owned.Open("/sub/gone"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file under an opaque folder: %v", err)
	}
	if got := read(t, owned, "/sub/new"); got != "new" {
		t.Errorf("got %q", got)
	}
	again, err := im.WithOwners(t.Context(), block(first))
	if err != nil || !cmp.Equal(again.Layers, owned.Layers) {
		t.Fatalf("once more: got %v, %v, want the same layers", again, err)
	}
	cleanedWhenFree(t, cacheDir, im, owned, again)
}

// cleanedWhenFree closes the images, whose layers go then and not before.
func cleanedWhenFree(t *testing.T, cacheDir string, images ...*Image) {
	t.Helper()
	later := time.Now().Add(time.Hour)
	if gone, err := Clean(t.Context(), cacheDir, later); err != nil || len(gone) > 0 {
		t.Fatalf("while held: got %v, %v; want nothing removed", gone, err)
	}
	for _, im := range images {
		if err := im.Close(); err != nil {
			t.Fatal(err)
		}
	}
	gone, err := Clean(t.Context(), cacheDir, later)
	if err != nil || len(gone) != 4 {
		t.Fatalf("cleaned: got %v, %v; want two layers and their copies", gone, err)
	}
	for _, l := range gone {
		if strings.ContainsRune(l.Digest, '-') {
			t.Errorf("got digest %q, want a layer's", l.Digest)
		}
	}
}

func TestOwnerBeyondTheContainer(t *testing.T) {
	need.Root(t)
	s := registryserver.Start(t, registryserver.Options{})
	ref := s.Push("beyond", "1", registryserver.NewImage(t, ispec.ImageConfig{}, ispec.Platform{}, gzipLayer(t, ownedFile("home/x", 0o644, 70000, 0))))
	cacheDir := t.TempDir()
	im := pull(t, ref, Options{Cache: cacheDir})
	got, err := im.WithOwners(t.Context(), block(1<<20))
	if !errors.Is(err, errOwner) || !strings.Contains(err.Error(), "home/x, of 70000:0: ") {
		t.Fatalf("got %v, %v, want %v", got, err, errOwner)
	}
	found, err := filepath.Glob(filepath.Join(cacheDir, "image", "layers", "*", "*-o*"))
	if err != nil || len(found) > 0 {
		t.Errorf("left behind: %q, %v", found, err)
	}
}

// listing is all that a layer has, in order.
func listing(t *testing.T, dir string) string {
	t.Helper()
	all := tree(t, dir)
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.WriteString(name + " " + all[name] + "\n")
	}
	return b.String()
}
