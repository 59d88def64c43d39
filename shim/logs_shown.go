package shim

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/launcher/yarn"
)

// showLogs has an instance's logs stand beside YARN's own, too, as INSTANCE.stdout.log and so on: its log aggregation takes the
// files of a container's log folder and nothing of the folders in it, and then removes them all.
func (a *agent) showLogs(in registry.Instance) {
	top, _, _ := strings.Cut(os.Getenv("LOG_DIRS"), ",")
	if a.alloc.Launcher != string(yarn.Name) || filepath.Join(absolute(top), "muster") != a.logDir {
		return // they are elsewhere
	}
	for _, name := range []string{"stdout.log", "stderr.log", "agent.log"} {
		err := os.Symlink(filepath.Join("muster", in.String(), name), filepath.Join(top, in.String()+"."+name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			a.log.Warn("logs are not shown to YARN", "err", err)
			return
		}
	}
}
