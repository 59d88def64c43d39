package files

import (
	"path/filepath"
	"strings"

	"github.com/muster-agent/muster/shim/store"
)

// LocalPath is the path of a file: URL, or of a path alone; empty: it is no file of this machine.
func LocalPath(url string) string {
	scheme := store.SchemeOf(url)
	if scheme != "" && !strings.EqualFold(scheme, "file:") {
		return ""
	}
	path := strings.TrimPrefix(url[len(scheme):], "//localhost")
	return filepath.Clean("/" + strings.TrimLeft(path, "/"))
}
