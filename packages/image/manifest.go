package image

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Docker's names for the same documents (distribution: manifest-v2-2).
const (
	dockerIndex     = "application/vnd.docker.distribution.manifest.list.v2+json"
	dockerManifest  = "application/vnd.docker.distribution.manifest.v2+json"
	dockerConfig    = "application/vnd.docker.container.image.v1+json"
	dockerLayer     = "application/vnd.docker.image.rootfs.diff.tar"
	dockerLayerGzip = "application/vnd.docker.image.rootfs.diff.tar.gzip"
	dockerLayerZstd = "application/vnd.docker.image.rootfs.diff.tar.zstd"
)

// Bounds of what a manifest may ask for.
const (
	maxManifest = 8 << 20 // bytes of a manifest, an index or a configuration
	maxLayers   = 500     // overlayfs takes as many lower folders (OVL_MAX_STACK)
	maxIndexes  = 3       // an index may hold an index
)

// compression is how a layer's tar is packed.
type compression string

const (
	plainTar compression = "tar"
	gzipTar  compression = "gzip"
	zstdTar  compression = "zstd"
)

// compressions are the layers that can be read, by media type.
var compressions = map[string]compression{
	ispec.MediaTypeImageLayer:     plainTar,
	ispec.MediaTypeImageLayerGzip: gzipTar,
	ispec.MediaTypeImageLayerZstd: zstdTar,
	dockerLayer:                   plainTar,
	dockerLayerGzip:               gzipTar,
	dockerLayerZstd:               zstdTar,
}

func readableManifest(mediaType string) bool { return isIndex(mediaType) || isManifest(mediaType) }

func isIndex(mediaType string) bool {
	return mediaType == ispec.MediaTypeImageIndex || mediaType == dockerIndex
}

func isManifest(mediaType string) bool {
	return mediaType == ispec.MediaTypeImageManifest || mediaType == dockerManifest
}

// platform is os/arch[/variant].
type platform struct{ os, arch, variant string }

func parsePlatform(text string) (platform, error) {
	parts := strings.Split(text, "/")
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return platform{}, fmt.Errorf("platform: got %q, want os/arch or os/arch/variant", text)
	}
	return platform{os: parts[0], arch: parts[1], variant: strings.Join(parts[2:], "")}, nil
}

func (p platform) String() string {
	if p.variant == "" {
		return p.os + "/" + p.arch
	}
	return p.os + "/" + p.arch + "/" + p.variant
}

// fits tells whether what is had runs where p is; without a variant in p any will do.
func (p platform) fits(have platform) bool {
	return have.os == p.os && have.arch == p.arch && (p.variant == "" || p.variant == have.variant)
}

// choose picks the image of an index for the platform. Of several variants the plainest is taken: it runs everywhere.
func choose(index ispec.Index, want platform) (ispec.Descriptor, error) {
	var best *ispec.Descriptor
	have := map[string]bool{}
	for i, d := range index.Manifests {
		if d.Platform == nil {
			if len(index.Manifests) == 1 { // its configuration says what it is for
				return d, nil
			}
			continue
		}
		one := platform{os: d.Platform.OS, arch: d.Platform.Architecture, variant: d.Platform.Variant}
		if one.os == "unknown" { // attestations
			continue
		}
		have[printable(one.String())] = true
		if want.fits(one) && (best == nil || d.Platform.Variant < best.Platform.Variant) {
			best = &index.Manifests[i]
		}
	}
	if best == nil {
		return ispec.Descriptor{}, &platformError{Want: want.String(), Have: slices.Sorted(maps.Keys(have))}
	}
	return *best, nil
}

// layerRef is one layer: what to fetch and what must come out.
type layerRef struct {
	ispec.Descriptor
	diffID digest.Digest
	packed compression
}

// parseIndex, parseManifest and parseConfig read untrusted text; nothing of it is used unchecked.
func parseIndex(text []byte) (ispec.Index, error) {
	var index ispec.Index
	if err := json.Unmarshal(text, &index); err != nil {
		return index, refuse("index: %v", err)
	}
	for _, d := range index.Manifests {
		if err := checkDescriptor("index", d); err != nil {
			return index, err
		}
	}
	return index, nil
}

func parseManifest(text []byte) (ispec.Manifest, error) {
	var m ispec.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return m, refuse("manifest: %v", err)
	}
	if m.SchemaVersion != 2 {
		return m, refuse("manifest: schemaVersion: got %d, want 2: an image of the first format must be pushed again",
			m.SchemaVersion)
	}
	if t := m.Config.MediaType; t != ispec.MediaTypeImageConfig && t != dockerConfig {
		return m, refuse("manifest: config: got media type %q, want a container image: it is something else",
			printable(t))
	}
	if len(m.Layers) > maxLayers {
		return m, refuse("manifest: got %d layers, want at most %d", len(m.Layers), maxLayers)
	}
	return m, checkDescriptor("config", m.Config)
}

func checkDescriptor(what string, d ispec.Descriptor) error {
	if err := d.Digest.Validate(); err != nil {
		return refuse("%s: digest %q: %v", what, printable(d.Digest.String()), err)
	}
	if d.Size < 0 {
		return refuse("%s %s: got a size of %d bytes", what, d.Digest, d.Size)
	}
	return nil
}

// layers pairs the manifest's blobs with the configuration's diff ids.
func layers(m ispec.Manifest, diffIDs []digest.Digest) ([]layerRef, error) {
	if len(m.Layers) != len(diffIDs) {
		return nil, refuse("got %d layers in the manifest and %d in the configuration", len(m.Layers), len(diffIDs))
	}
	refs := make([]layerRef, 0, len(m.Layers))
	for i, d := range m.Layers {
		packed, ok := compressions[d.MediaType]
		if !ok {
			return nil, refuse("layer %d: got media type %q, want a tar, as it is or packed by gzip or zstd", i+1,
				printable(d.MediaType))
		}
		if len(d.URLs) > 0 {
			return nil, refuse("layer %d: got an address outside of the registry, want its content in the registry",
				i+1)
		}
		if err := checkDescriptor("layer", d); err != nil {
			return nil, err
		}
		if err := diffIDs[i].Validate(); err != nil {
			return nil, refuse("layer %d: diff id %q: %v", i+1, printable(diffIDs[i].String()), err)
		}
		refs = append(refs, layerRef{Descriptor: d, diffID: diffIDs[i], packed: packed})
	}
	return distinct(refs), nil
}

// distinct leaves of equal layers the topmost: it holds all that the lower ones do, and overlayfs takes no folder
// twice.
func distinct(refs []layerRef) []layerRef {
	seen := map[digest.Digest]bool{}
	var kept []layerRef
	for _, r := range slices.Backward(refs) {
		if !seen[r.diffID] {
			seen[r.diffID] = true
			kept = append(kept, r)
		}
	}
	slices.Reverse(kept)
	return kept
}

// Config is what an image says of its process. All of it is untrusted: its environment belongs into the container
// and nowhere else.
type Config struct {
	Entrypoint []string
	Cmd        []string
	Env        []string // NAME=VALUE; no name holds a slash or a control character
	WorkingDir string   // absolute, or empty
	User       string   // name or uid, with :group or :gid; empty is root
}

func parseConfig(text []byte) (Config, []digest.Digest, platform, error) {
	var c ispec.Image
	if err := json.Unmarshal(text, &c); err != nil {
		return Config{}, nil, platform{}, refuse("config: %v", err)
	}
	if c.RootFS.Type != "layers" {
		return Config{}, nil, platform{}, refuse("config: rootfs: got type %q, want layers", printable(c.RootFS.Type))
	}
	config := Config{
		Entrypoint: c.Config.Entrypoint, Cmd: c.Config.Cmd, Env: c.Config.Env, WorkingDir: c.Config.WorkingDir,
		User: c.Config.User,
	}
	return config, c.RootFS.DiffIDs, platform{os: c.OS, arch: c.Architecture, variant: c.Variant}, config.check()
}

// check refuses what no process can be started with. A variable's name may become that of a file on the host, of a
// value too long for a variable, and a line of a message.
func (c Config) check() error {
	for _, s := range slices.Concat(c.Entrypoint, c.Cmd, c.Env, []string{c.WorkingDir, c.User}) {
		if strings.ContainsRune(s, 0) {
			return refuse("config: got a zero byte in %q", printable(s))
		}
	}
	for _, e := range c.Env {
		name, _, ok := strings.Cut(e, "=")
		if !ok || name == "" || name == "." || name == ".." || strings.Contains(name, "/") || unprintable(name) {
			return refuse("config: env: got %q, want NAME=VALUE with a name that has no slash and no control character",
				printable(e))
		}
	}
	if c.WorkingDir != "" && !strings.HasPrefix(c.WorkingDir, "/") {
		return refuse("config: working folder: got %q, want an absolute path", printable(c.WorkingDir))
	}
	return nil
}
