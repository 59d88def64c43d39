package files

import (
	"path/filepath"
	"strings"

	"github.com/muster-agent/muster/packages/fetch"
)

// LocalPath is the path of a file: URL, or of a path alone; empty: it is no file of this machine.
func LocalPath(url string) string {
	scheme := fetch.SchemeOf(url)
	if scheme != "" && !strings.EqualFold(scheme, "file:") {
		return ""
	}
	path := strings.TrimPrefix(url[len(scheme):], "//localhost")
	return filepath.Clean("/" + strings.TrimLeft(path, "/"))
}
