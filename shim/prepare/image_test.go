package prepare

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	ispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/packages/image"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/gpu/grant"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/sandbox/subids"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/hdfs"
	"github.com/muster-agent/muster/shim/store/schemes"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/registryserver"
)

// A user that is not there is the fault of who named it.
func TestUnknownUserInImage(t *testing.T) {
	dir := t.TempDir()
	err := errors.Join(os.Mkdir(filepath.Join(dir, "etc"), 0o755), os.WriteFile(filepath.Join(dir, "etc/passwd"), []byte("app:x:7:8::/srv:\n"), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	c := New(Config{Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	c.image.Image = &image.Image{Ref: "lab/app:1", Layers: []string{dir}, Config: image.Config{User: "ghost"}}
	for user, want := range map[string]registry.Class{"ghost": registry.ClassImage, "nobody": registry.ClassDefinition, "app": ""} {
		got, err := c.lookUpUser(plan.Plan{Root: plan.Root{Kind: plan.RootImage}, Process: plan.Process{User: user}})
		switch {
		case want == "" && (err != nil || got.UID != 7 || got.Home != "/srv"):
			t.Errorf("%s: got %+v, %v", user, got, err)
		case want != "" && (err == nil || fault.ClassOf(err) != want):
			t.Errorf("%s: got %v, want class %s", user, err, want)
		}
	}
}

// What trying an image again may help, and what it never does.
func TestImagesThatPass(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{image.ErrUnreachable, true},
		{image.ErrDigest, true},
		{syscall.ENOSPC, true},
		{image.ErrNotFound, false},
		{image.ErrUnauthorized, false},
		{image.ErrReference, false},
		{image.ErrPlatform, false},
		{image.ErrRefused, false},
		{errors.New("muster.image.auth: no such file"), false},
	} {
		err := fmt.Errorf("stage: %w", imageFault(&image.Error{Ref: "lab/app:1", Err: fmt.Errorf("pull: %w", c.err)}))
		failed, ok := errors.AsType[*fault.Error](err)
		if !ok || failed.Passing != c.want || failed.Class != registry.ClassImage {
			t.Errorf("%v: got %+v, want an image's, passing %t", c.err, failed, c.want)
		}
	}
}

// On a full disk an image that nobody uses gives way; one that is held stays.
func TestRoomForAnImage(t *testing.T) {
	need.Root(t)
	const fileSize, diskSize = 5 << 19, 7 << 20 // two layers and a half, and blobs are there beside their layers
	cache := t.TempDir()
	if err := unix.Mount("tmpfs", cache, "tmpfs", 0, "mode=700,size="+strconv.Itoa(diskSize)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(cache, 0); err != nil {
			t.Error(err)
		}
	})
	s := registryserver.Start(t, registryserver.Options{})
	push := func(name string) string {
		content := make([]byte, fileSize)
		_, _ = rand.Read(content) // it never fails
		layer := registryserver.Pack(t, ispec.MediaTypeImageLayerGzip,
			registryserver.Tar(t, registryserver.File{Header: tar.Header{Name: name}, Content: string(content)}))
		return s.Push(name, "1", registryserver.NewImage(t, ispec.ImageConfig{}, ispec.Platform{}, layer))
	}
	c := New(Config{Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	options := image.Options{Cache: cache, Logger: c.Log}
	first, err := c.pullMakingRoom(t.Context(), push("first"), options)
	if err != nil {
		t.Fatal(err)
	}
	second := push("second")
	if im, err := c.pullMakingRoom(t.Context(), second, options); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("while the first is held: got %+v, %v, want %v", im, err, syscall.ENOSPC)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	im, err := c.pullMakingRoom(t.Context(), second, options)
	if err != nil {
		t.Fatalf("when nobody holds the first: %v", err)
	}
	if _, err := os.Lstat(first.Layers[0]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the first: got %v, want it gone", err)
	}
	if err := im.Close(); err != nil {
		t.Error(err)
	}
}

// realStores reads where a definition's data is.
type realStores struct{}

func (realStores) Folders(plan.Plan) []string { return nil }

func (realStores) Read(ctx context.Context, _ plan.Plan, url string) (string, error) {
	opened, path, err := schemes.All(hdfs.Config{}).Open(ctx, url)
	if err != nil {
		return "", err
	}
	content, err := opened.Open(ctx, path, store.Position{})
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(content)
	return string(text), errors.Join(err, content.Close())
}

// Credentials are read from a file, of this machine or on a store: PAI's authFile is a path or a URL behind file:.
func TestImageAuth(t *testing.T) {
	const login = "docker.example\nann\nsecret\n"
	path := filepath.Join(t.TempDir(), "auth")
	if err := os.WriteFile(path, []byte(login), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/auth" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(login)) // the test sees what came
	}))
	defer server.Close()
	operator := policy.Policy{Roots: []policy.Root{{Path: filepath.Dir(path), ReadOnly: true}}}
	for ref, want := range map[string]string{
		"file:" + path: "", "file:file:" + path: "", "file:file://" + path: "", "file:" + server.URL + "/auth": "",
		"file:" + path + "x": "no such file", "file:" + server.URL + "/none": "404", "file:s3://b/auth": "no store for this scheme", "env:MUSTER_SECRET_NO_SUCH": "not set",
	} {
		got, err := New(Config{Stores: realStores{}, Policy: operator}).imageAuthText(t.Context(), plan.Plan{Root: plan.Root{Auth: ref}})
		if want == "" && (err != nil || strings.TrimSpace(got) != strings.TrimSpace(login)) {
			t.Errorf("%s: got %q, %v", ref, got, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %s", ref, err, want)
		}
	}
}

// A definition names root's files as a login to a registry of its own.
func TestAttackLoginFromRootsFiles(t *testing.T) {
	need.Root(t)
	secret := filepath.Join(t.TempDir(), "shadow")
	if err := os.WriteFile(secret, []byte("docker.example\nroot\nhash\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := New(Config{Stores: realStores{}, WorkDir: t.TempDir()})
	got, err := c.imageAuthText(t.Context(), plan.Plan{Root: plan.Root{Kind: plan.RootImage, Auth: "file:" + secret}})
	if !fault.Is(err, registry.ClassNotPermitted) || !strings.Contains(err.Error(), `"secret_files": ["`+secret+`"]`) {
		t.Errorf("got %q, %v, want a refusal that names the policy's line", got, err)
	}
	c.setUser(&plan.UserFacts{UID: 65534, GID: 65534})
	if got, err := c.imageAuthText(t.Context(), plan.Plan{Root: plan.Root{Auth: "file:" + secret}}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("as a user: got %q, %v, want a refusal for want of a right", got, err)
	}
}

// Where layers cannot be mounted with a container's owners, it gets copies that have them; else those that all share.
func TestLayersOfAHostWithoutIdmappedMounts(t *testing.T) {
	need.Root(t)
	s := registryserver.Start(t, registryserver.Options{})
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	layer := registryserver.Pack(t, ispec.MediaTypeImageLayerGzip, registryserver.Tar(t, registryserver.File{Header: tar.Header{Name: "etc/x", Uid: 5, Gid: 6}}))
	beyond := registryserver.Pack(t, ispec.MediaTypeImageLayerGzip, registryserver.Tar(t, registryserver.File{Header: tar.Header{Name: "y", Uid: 70000}}))
	good := s.Push("good", "1", registryserver.NewImage(t, ispec.ImageConfig{}, ispec.Platform{}, layer))
	bad := s.Push("bad", "1", registryserver.NewImage(t, ispec.ImageConfig{}, ispec.Platform{}, layer, beyond))
	const first = 0x7000_0000
	for _, tt := range []struct {
		name, ref string
		shows     error
		uid       uint32
		fails     string
	}{
		{name: "mounted", ref: good, uid: 5},
		{name: "copied", ref: good, shows: unix.EINVAL, uid: first + 5},
		{name: "an owner beyond", ref: bad, shows: unix.EINVAL, fails: "y, of 70000:0: its owner is none of the users and groups of a container"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := New(Config{Log: slog.New(slog.NewTextHandler(t.Output(), nil)), GPUs: &grant.Grant{}})
			defer c.Close()
			c.showsOwners = func(string, *subids.Map) error { return tt.shows }
			c.ids = &ids{block: subids.Block{UID: first, GID: first}}
			p := plan.Plan{}
			p.Root.Kind, p.Root.Image = plan.RootImage, tt.ref
			if _, err := c.pullImage(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			err := c.ownLayers(t.Context(), p)
			if tt.fails != "" {
				failed, ok := errors.AsType[*fault.Error](err)
				if !ok || !strings.Contains(err.Error(), tt.fails) || failed.Class != registry.ClassImage || failed.Passing {
					t.Fatalf("got %v, want %s of an image", err, tt.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			root := c.image.root()
			var is unix.Stat_t
			if err := unix.Lstat(filepath.Join(root.Entries[0].Layers[0], "x"), &is); err != nil {
				t.Fatal(err)
			}
			if is.Uid != tt.uid || root.Owned != (tt.shows != nil) {
				t.Errorf("got a file of %d, owned %t, want %d", is.Uid, root.Owned, tt.uid)
			}
		})
	}
}

// An image that is a folder of this host is read as the process would read it: a definition has no image made of what only
// root may read.
func TestAttackLayoutOfRoot(t *testing.T) {
	need.Root(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	top := folder.Temp(t, "layout-")
	folder.Lay(t, top, map[string]string{"open/index.json": "{}", "closed/index.json": "{}", "work/mine/index.json": "{}"})
	open, closed, work := filepath.Join(top, "open"), filepath.Join(top, "closed"), filepath.Join(top, "work")
	if err := errors.Join(os.Chmod(filepath.Join(open, "index.json"), 0o644), os.Chmod(closed, 0o700)); err != nil {
		t.Fatal(err)
	}
	own, roots := &ids{block: subids.Block{UID: 0x7000_0000, GID: 0x7000_0000}}, []policy.Root{{Path: closed, ReadOnly: true}}
	const read = "it holds no image"
	for _, tt := range []struct {
		name, dir string
		ids       *ids
		roots     []policy.Root
		want      string
		class     registry.Class
	}{
		{"anybody's", open, own, nil, read, registry.ClassImage},
		{"root's", closed, own, nil, "permission denied: open it to everybody", registry.ClassNotPermitted},
		{"root's of a tag", closed + ":latest", own, nil, "permission denied: open it to everybody", registry.ClassNotPermitted},
		{"/proc", "/proc/self/cwd", own, nil, "one of /proc", registry.ClassImage},
		{"ids of the host", open, nil, nil, `"roots": [{"path": "` + open + `", "read_only": true}]`, registry.ClassNotPermitted},
		{"that the operator names", closed, nil, roots, read, registry.ClassImage},
		{"in the work folder", filepath.Join(work, "mine"), nil, nil, read, registry.ClassImage},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := New(Config{Log: slog.New(slog.NewTextHandler(t.Output(), nil)), WorkDir: work, Policy: policy.Policy{Userns: "host", Roots: tt.roots}})
			defer c.Close()
			c.ids = tt.ids
			p := plan.Plan{}
			p.Root.Kind, p.Root.Image = plan.RootImage, "oci:"+tt.dir
			_, err := c.pullImage(t.Context(), p)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !fault.Is(err, tt.class) {
				t.Errorf("got %v, want %s of class %s", err, tt.want, tt.class)
			}
		})
	}
}
