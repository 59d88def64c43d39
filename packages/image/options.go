package image

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/authn"
)

// Options are how images are had; the zero value is good.
type Options struct {
	Cache    string         // folder of the cache; default the user's cache folder, `muster` in it
	Auth     *Auth          // nil: the user's docker config file ($DOCKER_CONFIG, ~/.docker), podman's, else anonymous
	Platform string         // os/arch[/variant]; default linux and this machine's
	Insecure []string       // registries (host[:port]) spoken to by plain http, besides those at loopback addresses
	Parallel int            // layers at a time; default 3
	Progress func(Progress) // called at most a few times a second, by one goroutine at a time; nil: silence
	Logger   *slog.Logger   // nil: silence

	Layout func(dir string) (Folder, error) // opens the folder of a layout; nil: with this program's own rights

	// MaxFiles and MaxBytes bound what one layer may hold unpacked; 0 means defaultMaxFiles and defaultMaxBytes.
	MaxFiles int
	MaxBytes int64
}

// What one layer may hold at most, unless Options say otherwise: several times the largest images in use.
const (
	defaultMaxFiles = 2_000_000
	defaultMaxBytes = 64 << 30
)

func (o Options) filled() (Options, error) {
	if o.Cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return o, fmt.Errorf("find the cache folder: %w", err)
		}
		o.Cache = filepath.Join(dir, "muster")
	}
	if o.Platform == "" {
		o.Platform = "linux/" + runtime.GOARCH
	}
	if o.Parallel <= 0 {
		o.Parallel = 3
	}
	if o.Layout == nil {
		o.Layout = openFolder
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxFiles <= 0 {
		o.MaxFiles = defaultMaxFiles
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMaxBytes
	}
	return o, nil
}

func (o Options) keychain() authn.Keychain {
	if o.Auth != nil {
		return *o.Auth
	}
	return authn.DefaultKeychain
}
