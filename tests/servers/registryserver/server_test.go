package registryserver_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	ispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/muster-agent/muster/packages/image"
	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/registryserver"
)

// TestImagesRunPython pulls both images and runs their Python on an overlay of their layers.
func TestImagesRunPython(t *testing.T) {
	need.Root(t)
	s := registryserver.Start(t, registryserver.Options{})
	for _, c := range []struct {
		name   string
		push   func(name, tag string) string
		loader string
	}{
		{"glibc", s.PushPython, "ld-linux"},
		{"musl", s.PushMusl, "ld-musl"},
	} {
		t.Run(c.name, func(t *testing.T) {
			im, err := image.Pull(t.Context(), c.push("python", c.name), image.Options{Cache: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			defer im.Close()
			if f, err := im.Open("/usr/share/doc"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("/usr/share/doc: got %v, %v, want %v: the last layer takes it away", f, err, fs.ErrNotExist)
			}
			root := t.TempDir()
			var lower []string
			for _, l := range im.Layers {
				lower = append([]string{l}, lower...)
			}
			// the mount goes with its namespace
			script := fmt.Sprintf(`mount -t overlay -o ro,lowerdir=%s overlay %s && mount -t proc proc %s && exec chroot %s /usr/bin/env -i PATH=/usr/bin /bin/sh -c 'python3 -c "
import array, base64, gzip, hashlib, json, math, random, select, signal, socketserver, struct, subprocess, threading
print(open(\"/proc/self/maps\").read())"; id -u; ls /usr/share'`,
				strings.Join(lower, ":"), root, filepath.Join(root, "proc"), root)
			out, err := exec.CommandContext(t.Context(), "unshare", "-m", "--propagation", "private", "sh", "-c", script).CombinedOutput()
			if err != nil || !strings.Contains(string(out), c.loader) {
				t.Errorf("got %v, %s; want Python with %s", err, out, c.loader)
			}
		})
	}
}

func TestLogin(t *testing.T) {
	s := registryserver.Start(t, registryserver.Options{Login: &registryserver.Login{User: "ada", Password: "lovelace"}})
	for password, want := range map[string]int{"lovelace": http.StatusOK, "guess": http.StatusUnauthorized} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr+"/v2/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("ada", password)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: got %s, want %d", password, resp.Status, want)
		}
	}
}

func TestRestartKeepsItsStorage(t *testing.T) {
	s := registryserver.Start(t, registryserver.Options{})
	p := registryserver.NewImage(t, ispec.ImageConfig{}, ispec.Platform{}, registryserver.Pack(t, ispec.MediaTypeImageLayer, registryserver.Tar(t)))
	ref := s.Push("app", "v1", p)
	s.Restart()
	im, err := image.Pull(t.Context(), ref, image.Options{Cache: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if im.Digest != p.Manifest.Digest.String() {
		t.Errorf("digest: got %s, want %s", im.Digest, p.Manifest.Digest)
	}
	if err := im.Close(); err != nil {
		t.Error(err)
	}
}
