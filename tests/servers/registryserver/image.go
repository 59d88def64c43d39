package registryserver

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Blob is content with its descriptor.
type Blob struct {
	ispec.Descriptor
	Content []byte
}

// Layer is a blob with the digest of its tar.
type Layer struct {
	Blob
	DiffID digest.Digest
}

// Pushable is an image in memory.
type Pushable struct {
	Manifest, Config Blob
	Layers           []Layer
}

// File is an entry of a layer. The zero Type is a regular file with Content.
type File struct {
	tar.Header
	Content string
}

// Tar packs entries as they are given: nothing is checked, for tests of hostile layers.
func Tar(t testing.TB, files ...File) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := f.Header
		if h.Typeflag == 0 {
			h.Typeflag, h.Size = tar.TypeReg, int64(len(f.Content))
		}
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		if err := errors.Join(w.WriteHeader(&h), second(io.WriteString(w, f.Content))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func second(_ int, err error) error { return err }

// Pack makes a layer of a tar; the media type says how it is packed.
func Pack(t testing.TB, mediaType string, content []byte) Layer {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch mediaType {
	case ispec.MediaTypeImageLayerGzip:
		z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
		if err != nil {
			t.Fatal(err)
		}
		w = z
	case ispec.MediaTypeImageLayerZstd:
		z, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		w = z
	default:
		return Layer{Blob: NewBlob(mediaType, content), DiffID: digest.FromBytes(content)}
	}
	if err := errors.Join(second(w.Write(content)), w.Close()); err != nil {
		t.Fatal(err)
	}
	return Layer{Blob: NewBlob(mediaType, b.Bytes()), DiffID: digest.FromBytes(content)}
}

// NewBlob describes content.
func NewBlob(mediaType string, content []byte) Blob {
	return Blob{
		Descriptor: ispec.Descriptor{
			MediaType: mediaType, Digest: digest.FromBytes(content),
			Size: int64(len(content)),
		},
		Content: content,
	}
}

// NewImage puts layers and a configuration together, for this machine unless the configuration says otherwise.
func NewImage(t testing.TB, config ispec.ImageConfig, platform ispec.Platform, layers ...Layer) Pushable {
	t.Helper()
	if platform.OS == "" {
		platform = ispec.Platform{OS: "linux", Architecture: runtime.GOARCH}
	}
	image := ispec.Image{Platform: platform, Config: config, RootFS: ispec.RootFS{Type: "layers"}}
	manifest := ispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ispec.MediaTypeImageManifest}
	for _, l := range layers {
		image.RootFS.DiffIDs = append(image.RootFS.DiffIDs, l.DiffID)
		manifest.Layers = append(manifest.Layers, l.Descriptor)
	}
	p := Pushable{Config: NewBlob(ispec.MediaTypeImageConfig, encode(t, image)), Layers: layers}
	manifest.Config = p.Config.Descriptor
	p.Manifest = NewBlob(ispec.MediaTypeImageManifest, encode(t, manifest))
	p.Manifest.Platform = &platform
	return p
}

// NewIndex makes one name stand for several images.
func NewIndex(t testing.TB, images ...Pushable) Blob {
	t.Helper()
	index := ispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ispec.MediaTypeImageIndex}
	for _, i := range images {
		index.Manifests = append(index.Manifests, i.Manifest.Descriptor)
	}
	return NewBlob(ispec.MediaTypeImageIndex, encode(t, index))
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// WriteLayout writes an image as an OCI layout and returns its folder.
func WriteLayout(t testing.TB, tag string, images ...Pushable) string {
	t.Helper()
	dir := t.TempDir()
	index := ispec.Index{}
	index.SchemaVersion = 2
	put := func(b Blob) {
		path := filepath.Join(dir, "blobs", b.Descriptor.Digest.Algorithm().String(), b.Descriptor.Digest.Encoded())
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, b.Content, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range images {
		put(p.Manifest)
		put(p.Config)
		for _, l := range p.Layers {
			put(l.Blob)
		}
		d := p.Manifest.Descriptor
		if i == 0 && tag != "" {
			d.Annotations = map[string]string{ispec.AnnotationRefName: tag}
		}
		index.Manifests = append(index.Manifests, d)
	}
	text, err := json.Marshal(index)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ispec.ImageIndexFile), text, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Push puts an image into the registry as NAME:TAG and returns its reference.
func (s *Server) Push(name, tag string, p Pushable) string {
	s.t.Helper()
	for _, l := range p.Layers {
		s.PushBlob(name, l.Blob)
	}
	s.PushBlob(name, p.Config)
	s.PushManifest(name, tag, p.Manifest)
	return s.Ref(name + ":" + tag)
}

// PushManifest puts a manifest or an index whose parts are there; reference is a tag or a digest.
func (s *Server) PushManifest(name, reference string, m Blob) {
	s.t.Helper()
	s.send(http.MethodPut, "/v2/"+name+"/manifests/"+reference, m.MediaType, m.Content, http.StatusCreated)
}

// PushBlob uploads content in one piece unless it is there.
func (s *Server) PushBlob(name string, b Blob) {
	s.t.Helper()
	where := s.send(http.MethodPost, "/v2/"+name+"/blobs/uploads/", "", nil, http.StatusAccepted)
	u, err := url.Parse(where)
	if err != nil {
		s.t.Fatal(err)
	}
	q := u.Query()
	q.Set("digest", b.Digest.String())
	u.RawQuery = q.Encode()
	s.send(http.MethodPut, u.RequestURI(), "application/octet-stream", b.Content, http.StatusCreated)
}

// send makes a request and returns the answer's Location.
func (s *Server) send(method, path, mediaType string, body []byte, want int) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*watchdog)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.Addr+path, bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if mediaType != "" {
		req.Header.Set("Content-Type", mediaType)
	}
	if s.login != nil {
		req.SetBasicAuth(s.login.User, s.login.Password)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	said, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err = errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode != want {
		s.t.Fatal(fmt.Errorf("%s %s: want %d, got %s: %s: %w", method, path, want, resp.Status, said, err))
	}
	return resp.Header.Get("Location")
}
