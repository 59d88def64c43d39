package image

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ispec "github.com/opencontainers/image-spec/specs-go/v1"
)

const zeros = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

func TestParseReference(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"ubuntu":                       "index.docker.io/library/ubuntu:latest",
		"ubuntu:22.04":                 "index.docker.io/library/ubuntu:22.04",
		"docker.io/tensorflow/serving": "index.docker.io/tensorflow/serving:latest",
		"registry.lab:5000/a/b:c":      "registry.lab:5000/a/b:c",
		"a/b:c@" + zeros:               "index.docker.io/a/b@" + zeros,
		"oci:" + dir:                   dir + " ",
		"oci:" + dir + ":v1":           dir + " v1",
		"oci:/none/here":               "/none/here ",
		"oci:":                         "",
		"":                             "",
		"UPPER/case":                   "",
		"a b":                          "",
		"a:b:c":                        "",
		"a@sha256:0":                   "",
	} {
		r, err := parseReference(text, nil, openFolder)
		got := r.dir + " " + r.tag
		if r.name != nil {
			got = r.name.Name()
		}
		if want == "" {
			if !errors.Is(err, ErrReference) {
				t.Errorf("%q: got %v, want %v", text, err, ErrReference)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
		}
	}
}

func FuzzReference(f *testing.F) {
	for _, s := range []string{"ubuntu", "docker.io/a/b:c", "h:1/x@" + zeros, "oci:/dir:tag", "oci:", "127.0.0.1:5000/a", "[::1]:5000/a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseReference(text, nil, openFolder)
		if err != nil {
			if !errors.Is(err, ErrReference) {
				t.Errorf("got %v, want %v", err, ErrReference)
			}
			return
		}
		if r.name == nil {
			return
		}
		again, err := parseReference(r.name.Name(), nil, openFolder)
		if err != nil || again.name.Name() != r.name.Name() {
			t.Errorf("%q: got %v, %v when read again, want %s", text, again.name, err, r.name.Name())
		}
	})
}

func login(t testing.TB, a Auth, host string) authn.AuthConfig {
	t.Helper()
	r, err := name.NewRegistry(host)
	if err != nil {
		t.Fatal(err)
	}
	who, err := a.Resolve(r)
	if err != nil {
		t.Fatal(err)
	}
	got, err := who.Authorization()
	if err != nil {
		t.Fatal(err)
	}
	return *got
}

func TestParseAuth(t *testing.T) {
	ada := authn.AuthConfig{Username: "ada", Password: "l0ve:lace"}
	packed := base64.StdEncoding.EncodeToString([]byte("ada:l0ve:lace"))
	for _, c := range []struct {
		name, text, host string
		want             authn.AuthConfig
		err              string
	}{
		{name: "three lines", text: "docker.io\nada\nl0ve:lace\n", host: "index.docker.io", want: ada},
		{name: "three lines of another system", text: "\r\nregistry.lab:5000\r\nada\r\nl0ve:lace\r\n", host: "registry.lab:5000", want: ada},
		{name: "three lines, an address", text: "https://registry.lab/v2/\nada\nl0ve:lace", host: "registry.lab", want: ada},
		{name: "docker's key of its hub", text: `{"auths": {"https://index.docker.io/v1/": {"auth": "` + packed + `"}}}`, host: "docker.io", want: ada},
		{name: "docker, in words", text: `{"auths": {"registry.lab": {"username": "ada", "password": "l0ve:lace"}}, "credsStore": "x"}`, host: "registry.lab", want: ada},
		{name: "docker, a token", text: `{"auths": {"registry.lab": {"identitytoken": "tok"}}}`, host: "registry.lab", want: authn.AuthConfig{IdentityToken: "tok"}},
		{name: "another registry", text: "docker.io\nada\nl0ve:lace\n", host: "registry.lab", want: authn.AuthConfig{}},
		{name: "two lines", text: "docker.io\nada\n", err: "got 2 lines"},
		{name: "an empty line", text: "docker.io\n\nl0ve:lace\n", err: "empty line"},
		{name: "nothing", text: "", err: "got 1 lines"},
		{name: "not base64", text: `{"auths": {"registry.lab": {"auth": "l0ve:lace"}}}`, err: "registry.lab: auth: got something else than base64"},
		{name: "no JSON", text: `{"auths": "l0ve:lace"}`, err: "does not have the form"},
		{name: "helpers only", text: `{"credsStore": "desktop"}`, err: "got no login"},
		{name: "a header smuggled in", text: "registry.lab\nada\nl0ve\x00lace", err: "control characters"},
		{name: "no registry", text: "a b\nada\nl0ve:lace", err: "want a host"},
		{name: "large", text: strings.Repeat("x", maxAuth+1), err: "want at most"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := ParseAuth([]byte(c.text))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("got %v, want an error with %q", err, c.err)
				}
				if strings.Contains(err.Error(), "lace") {
					t.Errorf("the password stands in the error: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := login(t, a, c.host)
			got.Auth = "" // go-containerregistry packs it
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
				if said := fmt.Sprintf(format, a); strings.Contains(said, "lace") {
					t.Errorf("%s shows the password: %s", format, said)
				}
			}
		})
	}
}

func FuzzParseAuth(f *testing.F) {
	f.Add([]byte("docker.io\nada\nlovelace"))
	f.Add([]byte("docker.io\nada\xc2\n\x80lovelace")) // \xc2\x80 is a control character
	f.Add([]byte(`{"auths": {"registry.lab": {"auth": "YWRhOmwwdmU6bGFjZQ=="}}}`))
	f.Add([]byte(`{"auths": {"registry.lab": {"identitytoken": "t", "registrytoken": "r"}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := ParseAuth(text)
		if err != nil {
			return
		}
		if len(a.Registries()) == 0 || !slices.IsSorted(a.Registries()) {
			t.Errorf("got registries %q, want some, sorted", a.Registries())
		}
		for _, host := range a.Registries() {
			got := login(t, a, host)
			if got == (authn.AuthConfig{}) {
				t.Errorf("%s: got no login", host)
			}
			if unprintable(host, got.Username, got.Password, got.IdentityToken, got.RegistryToken) {
				t.Errorf("%s: got control characters", host)
			}
		}
	})
}

func descriptor(mediaType string) ispec.Descriptor {
	return ispec.Descriptor{MediaType: mediaType, Digest: zeros, Size: 1}
}

func TestLayersRefused(t *testing.T) {
	elsewhere := descriptor(ispec.MediaTypeImageLayerGzip)
	elsewhere.URLs = []string{"https://elsewhere.invalid/layer"}
	negative := descriptor(ispec.MediaTypeImageLayerGzip)
	negative.Size = -1
	climbing := descriptor(ispec.MediaTypeImageLayerGzip)
	climbing.Digest = "sha256:../../../../etc/passwd"
	for _, c := range []struct {
		name   string
		layer  ispec.Descriptor
		diffID digest.Digest
		text   string
	}{
		{"elsewhere", elsewhere, zeros, "outside of the registry"},
		{"foreign", descriptor("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"), zeros, "foreign"},
		{"encrypted", descriptor(ispec.MediaTypeImageLayerGzip + "+encrypted"), zeros, "encrypted"},
		{"size", negative, zeros, "-1 bytes"},
		{"digest", climbing, zeros, "invalid checksum digest"},
		{"diff id", descriptor(ispec.MediaTypeImageLayer), "sha256:../x", "diff id"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := layers(ispec.Manifest{Layers: []ispec.Descriptor{c.layer}}, []digest.Digest{c.diffID})
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %v with %q", err, ErrRefused, c.text)
			}
		})
	}
	if _, err := layers(ispec.Manifest{}, []digest.Digest{zeros}); !errors.Is(err, ErrRefused) {
		t.Errorf("more diff ids than layers: got %v, want %v", err, ErrRefused)
	}
}

func TestEqualLayersAreTakenOnce(t *testing.T) {
	a, b := layerRef{diffID: "a:1"}, layerRef{diffID: "b:2"}
	if diff := cmp.Diff([]digest.Digest{"b:2", "a:1"}, []digest.Digest{distinct([]layerRef{a, b, a})[0].diffID, distinct([]layerRef{a, b, a})[1].diffID}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestChoose(t *testing.T) {
	var index ispec.Index
	for _, p := range []ispec.Platform{
		{OS: "unknown", Architecture: "unknown"},
		{OS: "linux", Architecture: "amd64", Variant: "v3"},
		{OS: "linux", Architecture: "amd64"},
		{OS: "linux", Architecture: "arm64", Variant: "v8"},
		{OS: "windows", Architecture: "amd64"},
	} {
		d := descriptor(ispec.MediaTypeImageManifest)
		d.Platform = &p
		index.Manifests = append(index.Manifests, d)
	}
	for text, want := range map[string]string{
		"linux/amd64": "linux/amd64", "linux/amd64/v3": "linux/amd64/v3", "linux/arm64": "linux/arm64/v8", "linux/arm64/v9": "", "linux/riscv64": "",
	} {
		wish, err := parsePlatform(text)
		if err != nil {
			t.Fatal(err)
		}
		d, err := choose(index, wish)
		var missing *platformError
		switch {
		case want == "":
			if !errors.As(err, &missing) || !slices.Equal(missing.Have, []string{"linux/amd64", "linux/amd64/v3", "linux/arm64/v8", "windows/amd64"}) {
				t.Errorf("%s: got %v, want what there is", text, err)
			}
		case err != nil:
			t.Errorf("%s: %v", text, err)
		default:
			if got := (platform{d.Platform.OS, d.Platform.Architecture, d.Platform.Variant}).String(); got != want {
				t.Errorf("%s: got %s, want %s", text, got, want)
			}
		}
	}
}

func FuzzDocuments(f *testing.F) {
	config, err := json.Marshal(ispec.Image{
		Platform: ispec.Platform{OS: "linux", Architecture: "amd64"}, RootFS: ispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{zeros}},
		Config: ispec.ImageConfig{Env: []string{"A=b"}, WorkingDir: "/"},
	})
	if err != nil {
		f.Fatal(err)
	}
	manifest, err := json.Marshal(ispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, Config: descriptor(ispec.MediaTypeImageConfig), Layers: []ispec.Descriptor{descriptor(ispec.MediaTypeImageLayerGzip)},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(manifest, config)
	f.Add([]byte(`{"manifests": [{"digest": "`+zeros+`", "platform": {"os": "linux", "architecture": "arm64"}}]}`), config)
	f.Fuzz(func(t *testing.T, document, config []byte) {
		if index, err := parseIndex(document); err == nil {
			_, err := choose(index, platform{os: "linux", arch: "amd64"})
			if err != nil && !errors.Is(err, ErrPlatform) {
				t.Errorf("choose: got %v, want %v", err, ErrPlatform)
			}
		}
		c, diffIDs, _, err := parseConfig(config)
		if err != nil {
			return
		}
		for _, e := range c.Env {
			if i := strings.IndexByte(e, '='); i < 1 || strings.ContainsRune(e, 0) || strings.Contains(e[:i], "/") {
				t.Errorf("got environment %q", e)
			}
		}
		m, err := parseManifest(document)
		if err != nil {
			return
		}
		refs, err := layers(m, diffIDs)
		if err != nil {
			return
		}
		for _, r := range refs {
			if strings.Contains(blobName(r.Descriptor), "..") || r.Size < 0 || r.packed == "" {
				t.Errorf("got layer %+v", r)
			}
		}
	})
}
