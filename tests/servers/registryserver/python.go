package registryserver

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	ispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/muster-agent/muster/tests/need"
)

// PushPython pushes an image with glibc, bash, coreutils and Debian's python3 as NAME:TAG and returns its reference. A
// last layer takes /usr/share/doc away. Its user is root, its working folder /.
func (s *Server) PushPython(name, tag string) string {
	s.t.Helper()
	return s.pushRoot("glibc", name, tag)
}

// PushMusl pushes an image with musl, busybox and a python3 built for musl, otherwise as PushPython.
func (s *Server) PushMusl(name, tag string) string {
	s.t.Helper()
	return s.pushRoot("musl", name, tag)
}

func (s *Server) pushRoot(kind, name, tag string) string {
	s.t.Helper()
	layers := Root(s.t, kind)
	layers = append(layers, Pack(s.t, ispec.MediaTypeImageLayerGzip, Tar(s.t, whiteout("usr/share/.wh.doc"))))
	config := ispec.ImageConfig{
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "IMAGE=" + kind},
		Cmd: []string{"python3"}, WorkingDir: "/",
	}
	return s.Push(name, tag, NewImage(s.t, config, ispec.Platform{}, layers...))
}

func whiteout(name string) File {
	var f File
	f.Name, f.Mode = name, 0o644
	return f
}

// Root are the layers, lowest first, that `scripts/lab/images build` left in the cache: glibc or musl. Without them the
// test is skipped (package need).
func Root(t testing.TB, kind string) []Layer {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	script := filepath.Join(filepath.Dir(here), "../../../scripts/lab/images")
	said, err := exec.Command(script, "where", kind).Output() //nolint:noctx // prints a line
	if err != nil {
		t.Fatal(err)
	}
	dir := strings.TrimSpace(string(said))
	tars, err := filepath.Glob(filepath.Join(dir, "*.tar")) // sorted: their names begin with their place
	if err != nil {
		t.Fatal(err)
	}
	if len(tars) == 0 {
		need.Skip(t, "no image of "+kind+" at "+dir+" (make it with scripts/lab/images build)")
	}
	var layers []Layer
	for _, path := range tars {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, Pack(t, ispec.MediaTypeImageLayerGzip, content))
	}
	return layers
}
