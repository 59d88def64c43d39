package image

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/opencontainers/go-digest"
	ispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/registryserver"
)

// file is a regular file of a layer.
func file(name, content string) registryserver.File {
	return registryserver.File{Header: tar.Header{Name: name, Mode: 0o644}, Content: content}
}

func entry(kind byte, name, link string) registryserver.File {
	return registryserver.File{Header: tar.Header{Typeflag: kind, Name: name, Linkname: link}}
}

func gzipLayer(t testing.TB, files ...registryserver.File) registryserver.Layer {
	t.Helper()
	return registryserver.Pack(t, ispec.MediaTypeImageLayerGzip, registryserver.Tar(t, files...))
}

// twoLayers is an image that has something to say in each of its fields.
func twoLayers(t testing.TB) registryserver.Pushable {
	t.Helper()
	return registryserver.NewImage(t, ispec.ImageConfig{
		User: "app:staff", WorkingDir: "/srv", Entrypoint: []string{"/bin/sh", "-c"}, Cmd: []string{"echo hello"},
		Env:          []string{"PATH=/bin", "EMPTY="},
		ExposedPorts: map[string]struct{}{"80/tcp": {}}, StopSignal: "SIGINT", // nothing follows from these
	}, ispec.Platform{},
		gzipLayer(t, file("etc/passwd", "root:x:0:0::/:\n"), file("etc/old", "old"), entry(tar.TypeSymlink, "bin", "usr/bin"), file("usr/bin/sh", "#!")),
		registryserver.Pack(t, ispec.MediaTypeImageLayerZstd, registryserver.Tar(t, file("etc/passwd", "app:x:7:7::/:\n"), file("etc/.wh.old", ""))),
	)
}

// pull pulls and closes when the test ends.
func pull(t testing.TB, ref string, o Options) *Image {
	t.Helper()
	im, err := Pull(t.Context(), ref, o)
	if err != nil {
		t.Fatalf("pull: %v", err)
	}
	t.Cleanup(func() { im.Close() })
	return im
}

func read(t testing.TB, im *Image, name string) string {
	t.Helper()
	f, err := im.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPull(t *testing.T) {
	s := registryserver.Start(t, registryserver.Options{})
	p := twoLayers(t)
	ref := s.Push("team/app", "v1", p)
	cacheDir := t.TempDir()
	var mu sync.Mutex
	var last Progress
	im := pull(t, ref, Options{Cache: cacheDir, Progress: func(p Progress) { mu.Lock(); last = p; mu.Unlock() }})

	want := Config{
		User: "app:staff", WorkingDir: "/srv", Entrypoint: []string{"/bin/sh", "-c"}, Cmd: []string{"echo hello"},
		Env: []string{"PATH=/bin", "EMPTY="},
	}
	if diff := cmp.Diff(want, im.Config); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	if im.Digest != p.Manifest.Digest.String() {
		t.Errorf("digest: got %s, want %s", im.Digest, p.Manifest.Digest)
	}
	if len(im.Layers) != 2 || read(t, im, "/etc/passwd") != "app:x:7:7::/:\n" || read(t, im, "/bin/sh") != "#!" {
		t.Errorf("layers: got %v, want two, of which the second is above the first", im.Layers)
	}
	if _, err := im.Open("/etc/old"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that a layer takes away: got %v, want %v", err, fs.ErrNotExist)
	}
	bytes := p.Layers[0].Size + p.Layers[1].Size
	if diff := cmp.Diff(Progress{Ref: ref, Done: bytes, Total: bytes, Layers: 2, Ready: 2}, last); diff != "" {
		t.Errorf("last progress (-want +got):\n%s", diff)
	}
	for _, sub := range []string{"partial", "layers/sha256/*.new"} {
		left, _ := filepath.Glob(filepath.Join(cacheDir, "image", sub, "*"))
		if len(left) > 0 {
			t.Errorf("%s: got %v, want nothing left", sub, left)
		}
	}

	again := pull(t, ref, Options{Cache: cacheDir})
	if diff := cmp.Diff(im.Layers, again.Layers); diff != "" {
		t.Errorf("layers of a second pull (-first +second):\n%s", diff)
	}
}

func TestWithoutTheRegistry(t *testing.T) {
	s := registryserver.Start(t, registryserver.Options{})
	p := twoLayers(t)
	ref := s.Push("app", "v1", p)
	full := t.TempDir()
	pull(t, ref, Options{Cache: full})
	s.Stop()

	t.Run("by digest", func(t *testing.T) {
		im := pull(t, s.Ref("app@"+p.Manifest.Digest.String()), Options{Cache: full})
		if im.Digest != p.Manifest.Digest.String() {
			t.Errorf("digest: got %s, want %s", im.Digest, p.Manifest.Digest)
		}
	})
	t.Run("by tag", func(t *testing.T) {
		var log strings.Builder
		im := pull(t, ref, Options{Cache: full, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if im.Digest != p.Manifest.Digest.String() || !strings.Contains(log.String(), "registry unreachable") {
			t.Errorf("got digest %s and log %q, want %s and a warning", im.Digest, log.String(), p.Manifest.Digest)
		}
	})
	t.Run("nothing in the cache", func(t *testing.T) {
		_, err := Pull(t.Context(), ref, Options{Cache: t.TempDir()})
		var whole *Error
		if !errors.Is(err, ErrUnreachable) || !errors.As(err, &whole) || whole.Registry != s.Addr || whole.Ref != ref {
			t.Errorf("got %v, want %v of %s at %s", err, ErrUnreachable, ref, s.Addr)
		}
	})
}

func TestTagIsAskedAgain(t *testing.T) {
	s := registryserver.Start(t, registryserver.Options{})
	cacheDir := t.TempDir()
	first := s.Push("app", "v1", twoLayers(t))
	pull(t, first, Options{Cache: cacheDir})
	moved := registryserver.NewImage(t, ispec.ImageConfig{}, ispec.Platform{}, gzipLayer(t, file("new", "")))
	s.Push("app", "v1", moved)
	if im := pull(t, first, Options{Cache: cacheDir}); im.Digest != moved.Manifest.Digest.String() {
		t.Errorf("digest: got %s, want the tag's new one %s", im.Digest, moved.Manifest.Digest)
	}
}

func TestRefused(t *testing.T) {
	s := registryserver.Start(t, registryserver.Options{})
	one := gzipLayer(t, file("a", "a"))
	s.Push("app", "v1", twoLayers(t))
	other := registryserver.NewImage(t, ispec.ImageConfig{}, ispec.Platform{OS: "linux", Architecture: "s390x"}, one)
	s.Push("other", "v1", other)
	third := registryserver.NewImage(t, ispec.ImageConfig{}, ispec.Platform{OS: "linux", Architecture: "riscv64"}, one)
	s.PushBlob("other", third.Config)
	s.PushManifest("other", third.Manifest.Digest.String(), third.Manifest)
	s.PushManifest("other", "index", registryserver.NewIndex(t, other, third))

	wrong := one
	wrong.DiffID = digest.Digest("sha256:" + strings.Repeat("0", 64))
	s.Push("wrong", "diffid", registryserver.NewImage(t, ispec.ImageConfig{}, ispec.Platform{}, wrong))
	foreign := one
	foreign.MediaType = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"
	s.Push("wrong", "foreign", registryserver.NewImage(t, ispec.ImageConfig{}, ispec.Platform{}, foreign))
	s.Push("wrong", "env", registryserver.NewImage(t, ispec.ImageConfig{Env: []string{"=x"}}, ispec.Platform{}, one))
	climbing := "../../../../etc/cron.d/evil=" + strings.Repeat("#", 130_000)
	s.Push("wrong", "climbing", registryserver.NewImage(t, ispec.ImageConfig{Env: []string{climbing}}, ispec.Platform{}, one))
	s.Push("wrong", "dots", registryserver.NewImage(t, ispec.ImageConfig{Env: []string{"..=x"}}, ispec.Platform{}, one))
	notTar := registryserver.Layer{Blob: registryserver.NewBlob(ispec.MediaTypeImageLayerGzip, []byte("not gzip")), DiffID: one.DiffID}
	s.Push("wrong", "gzip", registryserver.NewImage(t, ispec.ImageConfig{}, ispec.Platform{}, notTar))

	for _, c := range []struct {
		name, ref string
		options   Options
		want      error
		text      string
	}{
		{name: "no such tag", ref: "app:v2", want: ErrNotFound, text: "tags of app that are there: v1"},
		{name: "no such name", ref: "nothing:v1", want: ErrNotFound, text: "check the name and the tag"},
		{name: "another machine's", ref: "other:v1", want: ErrPlatform, text: "got linux/s390x"},
		{name: "other machines'", ref: "other:index", want: ErrPlatform, text: "got linux/riscv64, linux/s390x"},
		{name: "diff id", ref: "wrong:diffid", want: ErrDigest, text: "layer as a tar: digest: want sha256:000"},
		{name: "foreign layer", ref: "wrong:foreign", want: ErrRefused, text: "foreign.diff.tar.gzip"},
		{name: "environment", ref: "wrong:env", want: ErrRefused, text: "want NAME=VALUE"},
		{name: "a path in the environment", ref: "wrong:climbing", want: ErrRefused, text: "no slash"},
		{name: "a dotted name in the environment", ref: "wrong:dots", want: ErrRefused, text: "want NAME=VALUE"},
		{name: "not gzip", ref: "wrong:gzip", want: ErrRefused, text: "gzip"},
		{name: "too many files", ref: "app:v1", options: Options{MaxFiles: 2}, want: ErrRefused, text: "more than 2 files"},
		{name: "too many bytes", ref: "app:v1", options: Options{MaxBytes: 1024}, want: ErrRefused, text: "unpacks to more bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.options.Cache = t.TempDir()
			_, err := Pull(t.Context(), s.Ref(c.ref), c.options)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %v with %q", err, c.want, c.text)
			}
			left, _ := filepath.Glob(filepath.Join(c.options.Cache, "image", "layers", "*", "*.new"))
			if len(left) > 0 {
				t.Errorf("got %v, want nothing left", left)
			}
			locks, _ := filepath.Glob(filepath.Join(c.options.Cache, "image", "locks", "*"))
			for _, path := range locks {
				held, err := (cache{root: filepath.Join(c.options.Cache, "image")}).tryLock(filepath.Base(path))
				if err != nil || held == nil {
					t.Fatalf("lock %s: got %v, %v, want nobody to hold it", path, held, err)
				}
				if err := held.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestLogin(t *testing.T) {
	login := registryserver.Login{User: "ada", Password: "l0ve:lace"}
	s := registryserver.Start(t, registryserver.Options{Login: &login})
	ref := s.Push("app", "v1", twoLayers(t))
	auth := func(user, password string) *Auth {
		a, err := ParseAuth([]byte(s.Addr + "\n" + user + "\n" + password + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		return &a
	}
	for _, c := range []struct {
		name string
		auth *Auth
		want error
	}{
		{"right", auth(login.User, login.Password), nil},
		{"wrong password", auth(login.User, "guess"), ErrUnauthorized},
		{"none", &Auth{}, ErrUnauthorized},
	} {
		t.Run(c.name, func(t *testing.T) {
			im, err := Pull(t.Context(), ref, Options{Cache: t.TempDir(), Auth: c.auth})
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if err == nil {
				im.Close()
			} else if strings.Contains(err.Error(), "guess") {
				t.Errorf("the password stands in the error: %v", err)
			}
		})
	}
	t.Run("docker config file", func(t *testing.T) {
		dir := t.TempDir()
		t.Setenv("HOME", dir)
		t.Setenv("DOCKER_CONFIG", dir)
		text := `{"auths": {"` + s.Addr + `": {"auth": "YWRhOmwwdmU6bGFjZQ=="}}}`
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		pull(t, ref, Options{Cache: t.TempDir()})
	})
}

// TestToken logs in as at Docker Hub: the registry names who gives tokens, and takes them only.
func TestToken(t *testing.T) {
	s := registryserver.Start(t, registryserver.Options{})
	p := twoLayers(t)
	s.Push("app", "v1", p)
	to := &url.URL{Scheme: "http", Host: s.Addr}
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	var scope atomic.Pointer[string]
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch {
		case r.URL.Path == "/token" && user == "ada" && password == "lovelace":
			asked := r.URL.Query().Get("scope")
			scope.Store(&asked)
			_, _ = io.WriteString(w, `{"token": "t0ken"}`)
		case r.Header.Get("Authorization") == "Bearer t0ken":
			pass.ServeHTTP(w, r)
		default:
			w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+r.Host+`/token",service="lab"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(front.Close)
	host := strings.TrimPrefix(front.URL, "http://")
	auth, err := ParseAuth([]byte(host + "\nada\nlovelace"))
	if err != nil {
		t.Fatal(err)
	}
	pull(t, host+"/app:v1", Options{Cache: t.TempDir(), Auth: &auth})
	if got := *scope.Load(); got != "repository:app:pull" {
		t.Errorf("asked for scope %q, want repository:app:pull", got)
	}
	if _, err := Pull(t.Context(), host+"/app:v1", Options{Cache: t.TempDir(), Auth: &Auth{}}); !errors.Is(err, ErrUnauthorized) {
		t.Errorf("without a login: got %v, want %v", err, ErrUnauthorized)
	}
}

// proxy stands before a registry and changes what it answers for layers.
type proxy struct {
	*httptest.Server
	gets   atomic.Int32 // of layers
	ranges atomic.Int32 // of them, with Range
	layers atomic.Pointer[func(http.ResponseWriter, *http.Request, http.Handler)]
}

func (p *proxy) change(f func(http.ResponseWriter, *http.Request, http.Handler)) { p.layers.Store(&f) }

func (p *proxy) host() string { return strings.TrimPrefix(p.URL, "http://") }

// stand starts a proxy; blobs are layers but for those of the given digests.
func stand(t *testing.T, s *registryserver.Server, p registryserver.Pushable) *proxy {
	t.Helper()
	to := &url.URL{Scheme: "http", Host: s.Addr}
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	px := &proxy{}
	px.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		is := slices.ContainsFunc(p.Layers, func(l registryserver.Layer) bool {
			return strings.HasSuffix(r.URL.Path, "/blobs/"+l.Digest.String())
		})
		f := px.layers.Load()
		if !is || f == nil {
			pass.ServeHTTP(w, r)
			return
		}
		px.gets.Add(1)
		if r.Header.Get("Range") != "" {
			px.ranges.Add(1)
		}
		(*f)(w, r, pass)
	}))
	t.Cleanup(px.Close)
	return px
}

// bigLayer is one layer of about 1 MiB that does not pack.
func bigLayer(t testing.TB) registryserver.Pushable {
	t.Helper()
	content := make([]byte, 1<<20)
	for i := range content {
		content[i] = byte(i * i >> 7)
	}
	l := registryserver.Pack(t, ispec.MediaTypeImageLayer, registryserver.Tar(t, file("big", string(content))))
	return registryserver.NewImage(t, ispec.ImageConfig{}, ispec.Platform{}, l)
}

// short breaks off after n bytes of each answer.
func short(n int64) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		rec := httptest.NewRecorder()
		pass.ServeHTTP(rec, r)
		maps.Copy(w.Header(), rec.Header())
		w.WriteHeader(rec.Code)
		if _, err := io.CopyN(w, rec.Body, n); err == nil {
			panic(http.ErrAbortHandler)
		}
	}
}

func TestBrokenDownloadGoesOn(t *testing.T) {
	s := registryserver.Start(t, registryserver.Options{})
	p := bigLayer(t)
	s.Push("app", "v1", p)
	px := stand(t, s, p)

	t.Run("where it broke", func(t *testing.T) {
		px.change(short(300_000))
		pull(t, px.host()+"/app:v1", Options{Cache: t.TempDir()})
		if got, want := px.gets.Load(), int32(p.Layers[0].Size/300_000+1); got != want || px.ranges.Load() != want-1 {
			t.Errorf("got %d requests, %d of them for a range; want %d and %d", got, px.ranges.Load(), want, want-1)
		}
	})
	t.Run("in another process", func(t *testing.T) {
		cacheDir := t.TempDir()
		partial := filepath.Join(cacheDir, "image", "partial", "sha256-"+p.Layers[0].Digest.Encoded())
		if _, err := openCache(cacheDir); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(partial, p.Layers[0].Content[:1000], 0o600); err != nil {
			t.Fatal(err)
		}
		var first atomic.Pointer[string]
		px.change(func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
			asked := r.Header.Get("Range")
			first.CompareAndSwap(nil, &asked)
			pass.ServeHTTP(w, r)
		})
		pull(t, px.host()+"/app:v1", Options{Cache: cacheDir})
		if got := *first.Load(); got != "bytes=1000-" {
			t.Errorf("first request: got Range %q, want bytes=1000-", got)
		}
	})
	t.Run("from the start when what was there is wrong", func(t *testing.T) {
		cacheDir := t.TempDir()
		if _, err := openCache(cacheDir); err != nil {
			t.Fatal(err)
		}
		partial := filepath.Join(cacheDir, "image", "partial", "sha256-"+p.Layers[0].Digest.Encoded())
		for _, wrong := range []string{strings.Repeat("x", 1000), strings.Repeat("x", int(p.Layers[0].Size)), strings.Repeat("x", int(p.Layers[0].Size)+1)} {
			if err := os.WriteFile(partial, []byte(wrong), 0o600); err != nil {
				t.Fatal(err)
			}
			im := pull(t, px.host()+"/app:v1", Options{Cache: cacheDir})
			if err := errors.Join(im.Close(), os.RemoveAll(filepath.Dir(im.Layers[0]))); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("from the start where there are no ranges", func(t *testing.T) {
		var whole atomic.Bool
		px.change(func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
			r.Header.Del("Range")
			if whole.Swap(true) {
				pass.ServeHTTP(w, r)
				return
			}
			short(300_000)(w, r, pass)
		})
		pull(t, px.host()+"/app:v1", Options{Cache: t.TempDir()})
	})
}

func TestCalledOff(t *testing.T) {
	s := registryserver.Start(t, registryserver.Options{})
	p := bigLayer(t)
	s.Push("app", "v1", p)
	px := stand(t, s, p)
	ctx, cancel := context.WithCancel(t.Context())
	px.change(func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		defer cancel()
		short(300_000)(w, r, pass)
	})
	cacheDir := t.TempDir()
	if _, err := Pull(ctx, px.host()+"/app:v1", Options{Cache: cacheDir}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want %v", err, context.Canceled)
	}
	if left, _ := filepath.Glob(filepath.Join(cacheDir, "image", "partial", "*")); len(left) != 1 {
		t.Errorf("got partial blobs %v, want the one that was called off", left)
	}
}

// TestKilledWhileUnpacking: what is left is cleared by the next who makes the layer.
func TestKilledWhileUnpacking(t *testing.T) {
	p := bigLayer(t)
	cacheDir := t.TempDir()
	f, err := formHere(cacheDir)
	if err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(cacheDir, "image", "layers", "sha256", p.Layers[0].DiffID.Encoded()+f.mark()+".new", "fs", "half")
	if err := os.MkdirAll(left, 0o755); err != nil {
		t.Fatal(err)
	}
	im := pull(t, "oci:"+registryserver.WriteLayout(t, "", p), Options{Cache: cacheDir})
	if _, err := os.Lstat(filepath.Join(im.Layers[0], "half")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was left: got %v, want %v", err, fs.ErrNotExist)
	}
}

func TestChangedOnTheWay(t *testing.T) {
	s := registryserver.Start(t, registryserver.Options{})
	p := bigLayer(t)
	s.Push("app", "v1", p)
	px := stand(t, s, p)
	for _, c := range []struct {
		name    string
		content func() []byte
	}{
		{"a byte", func() []byte { b := slices.Clone(p.Layers[0].Content); b[len(b)-1] ^= 1; return b }},
		{"a byte more", func() []byte { return append(slices.Clone(p.Layers[0].Content), 0) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			px.change(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
				b := c.content()
				w.Header().Set("Content-Length", strconv.Itoa(len(b)))
				_, _ = w.Write(b)
			})
			cacheDir := t.TempDir()
			_, err := Pull(t.Context(), px.host()+"/app:v1", Options{Cache: cacheDir})
			if !errors.Is(err, ErrDigest) {
				t.Errorf("got %v, want %v", err, ErrDigest)
			}
			if left, _ := filepath.Glob(filepath.Join(cacheDir, "image", "layers", "sha256", "*")); len(left) > 0 {
				t.Errorf("got layers %v, want none", left)
			}
		})
	}
}

func TestTogether(t *testing.T) {
	s := registryserver.Start(t, registryserver.Options{})
	p := bigLayer(t)
	s.Push("app", "v1", p)
	px := stand(t, s, p)
	// the first download is held until all others wait for its layer
	const agents = 4
	waiting := make(chan struct{}, agents)
	px.change(func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		dog := time.NewTimer(30 * time.Second)
		defer dog.Stop()
		for range agents - 1 {
			select {
			case <-waiting:
			case <-dog.C:
				t.Error("the other agents do not wait")
				return
			}
		}
		pass.ServeHTTP(w, r)
	})
	cacheDir := t.TempDir()
	var all sync.WaitGroup
	for range agents {
		all.Go(func() {
			o := Options{Cache: cacheDir, Logger: slog.New(told{waiting})}
			im, err := Pull(t.Context(), px.host()+"/app:v1", o)
			if err != nil {
				t.Error(err)
				return
			}
			im.Close()
		})
	}
	all.Wait()
	if got := px.gets.Load(); got != 1 {
		t.Errorf("got %d downloads by %d agents, want 1", got, agents)
	}
}

// told is a log handler that notes who waits.
type told struct{ waiting chan struct{} }

func (told) Enabled(context.Context, slog.Level) bool { return true }
func (h told) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h told) WithGroup(string) slog.Handler          { return h }
func (h told) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "waiting for it") {
		select {
		case h.waiting <- struct{}{}:
		default: // an agent may wait twice
		}
	}
	return nil
}

func TestPlainHTTPNeedsToBeAllowed(t *testing.T) {
	far := guarded{inner: roundTripper(func(*http.Request) (*http.Response, error) { return &http.Response{}, nil }), insecure: []string{"registry.lab:5000"}}
	near := far
	near.near = true
	for address, want := range map[string]struct{ far, near bool }{
		"https://10.0.0.1/v2/": {true, true}, "http://10.0.0.1/v2/": {}, "http://registry.lab/v2/": {}, "http://169.254.169.254/": {},
		"http://127.0.0.1:5000/v2/": {false, true}, "http://[::1]/v2/": {false, true}, "http://localhost/v2/": {false, true},
		"http://registry.lab:5000/v2/": {true, true},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, farErr := far.RoundTrip(req)   //nolint:bodyclose // there is none
		_, nearErr := near.RoundTrip(req) //nolint:bodyclose // there is none
		if (farErr == nil) != want.far || (nearErr == nil) != want.near {
			t.Errorf("%s: got %v and %v, want allowed %+v", address, farErr, nearErr, want)
		}
	}
}

// A login goes to the registry alone, not where it sends who asks for a layer.
func TestRedirectHasNoLogin(t *testing.T) {
	login := registryserver.Login{User: "ada", Password: "lovelace"}
	s := registryserver.Start(t, registryserver.Options{Login: &login})
	p := twoLayers(t)
	s.Push("app", "v1", p)
	var asked, told atomic.Int32
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("Authorization") != "" {
			told.Add(1)
		}
		for _, l := range p.Layers {
			if strings.HasSuffix(r.URL.Path, l.Digest.String()) {
				_, _ = w.Write(l.Content)
			}
		}
	}))
	t.Cleanup(store.Close)
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: s.Addr}) }}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, l := range p.Layers {
			if strings.HasSuffix(r.URL.Path, l.Digest.String()) && r.Header.Get("Authorization") != "" {
				http.Redirect(w, r, store.URL+"/"+l.Digest.String(), http.StatusTemporaryRedirect)
				return
			}
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	host := strings.TrimPrefix(front.URL, "http://")
	auth, err := ParseAuth([]byte(host + "\nada\nlovelace"))
	if err != nil {
		t.Fatal(err)
	}
	pull(t, host+"/app:v1", Options{Cache: t.TempDir(), Auth: &auth})
	if asked.Load() != 2 || told.Load() != 0 {
		t.Errorf("%d of %d requests for layers had a login, want none of 2", told.Load(), asked.Load())
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

var _ authn.Keychain = Auth{}

func TestCleanLeavesWhatIsHeld(t *testing.T) {
	s := registryserver.Start(t, registryserver.Options{})
	ref := s.Push("app", "v1", twoLayers(t))
	cacheDir := t.TempDir()
	im := pull(t, ref, Options{Cache: cacheDir})
	later := time.Now().Add(time.Hour)
	if got, err := Clean(t.Context(), cacheDir, later); err != nil || len(got) > 0 {
		t.Fatalf("while held: got %v, %v; want nothing removed", got, err)
	}
	if err := im.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := Clean(t.Context(), cacheDir, time.Now().Add(-time.Hour)); err != nil || len(got) > 0 {
		t.Fatalf("used a moment ago: got %v, %v; want nothing removed", got, err)
	}
	unused, err := Unused(t.Context(), cacheDir, later)
	if err != nil {
		t.Fatal(err)
	}
	gone, err := Clean(t.Context(), cacheDir, later)
	if err != nil || len(gone) != 2 || gone[0].Bytes == 0 || !slices.Equal(unused, gone) {
		t.Fatalf("unused %v, cleaned: got %v, %v; want two layers with their sizes", unused, gone, err)
	}
	if _, err := os.Lstat(im.Layers[0]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a removed layer: got %v, want %v", err, fs.ErrNotExist)
	}
	pull(t, ref, Options{Cache: cacheDir})
}

// A cache below a folder in which somebody else could put another in its place is not used.
func TestCacheBelowOthers(t *testing.T) {
	need.Root(t)
	dir := t.TempDir()
	for _, c := range []struct {
		name  string
		owner int
		mode  os.FileMode
		text  string
	}{
		{name: "own", mode: 0o755},
		{name: "sticky", mode: 0o777 | os.ModeSticky},
		{name: "for everybody", mode: 0o777, text: "mode of"},
		{name: "another's", owner: 4242, mode: 0o755, text: "got uid 4242"},
	} {
		t.Run(c.name, func(t *testing.T) {
			above := filepath.Join(dir, c.name)
			if err := errors.Join(os.Mkdir(above, 0o700), os.Chmod(above, c.mode), os.Chown(above, c.owner, 0)); err != nil {
				t.Fatal(err)
			}
			_, err := openCache(filepath.Join(above, "below"))
			if (err == nil) != (c.text == "") || err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %q", err, c.text)
			}
		})
	}
}
