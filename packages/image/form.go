package image

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/opencontainers/umoci/oci/layer"
	"github.com/opencontainers/umoci/pkg/fseval"
	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/packages/cachedir"
)

// form is how layers are laid out on disk: as root or as a plain user.
type form struct {
	uid int // of a plain user; -1 for root
}

func (f form) plain() bool { return f.uid >= 0 }

// userXattr: trusted.* is for root of the machine alone (xattr(7)), and overlayfs reads one of the two.
func (f form) userXattr() bool { return f.plain() }

// mark keeps the layers of different forms apart.
func (f form) mark() string {
	if !f.plain() {
		return ""
	}
	return "-u" + strconv.Itoa(f.uid)
}

// formHere finds out which it is, in dir. Root of a user namespace, or one without CAP_SYS_ADMIN, is a plain user: it
// can neither keep every owner nor set trusted.*.
func formHere(dir string) (form, error) {
	plain := form{uid: os.Geteuid()}
	if os.Geteuid() != 0 || cachedir.InUserNamespace() {
		return plain, nil
	}
	probe, err := os.MkdirTemp(dir, ".probe-")
	if err != nil {
		return form{}, err
	}
	err = unix.Lsetxattr(probe, "trusted.overlay.opaque", []byte("y"), 0)
	if rmErr := os.Remove(probe); rmErr != nil {
		return form{}, rmErr
	}
	switch {
	case errors.Is(err, unix.EPERM):
		return plain, nil
	case err != nil:
		return form{}, fmt.Errorf("unpack below %s: its file system keeps no extended attributes, which overlayfs "+
			"needs: name another by XDG_CACHE_HOME: %w", dir, err)
	}
	return form{uid: -1}, nil
}

// extractor unpacks one layer.
func (f form) extractor() *layer.TarExtractor {
	return layer.NewTarExtractor(&layer.UnpackOptions{OnDiskFormat: layer.OverlayfsRootfs{
		MapOptions: layer.MapOptions{Rootless: f.plain()},
		UserXattr:  f.userXattr(),
	}})
}

// removeAll removes a layer's folder; a plain user may have folders in it that it has no permission for.
func (f form) removeAll(path string) error {
	if f.plain() {
		return fseval.Rootless.RemoveAll(path)
	}
	return os.RemoveAll(path)
}

// opaqueXattr marks a folder that hides the lower ones (kernel: Documentation/filesystems/overlayfs.rst).
func (f form) opaqueXattr() string {
	if f.userXattr() {
		return "user.overlay.opaque"
	}
	return "trusted.overlay.opaque"
}
