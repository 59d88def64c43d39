package hboxjob

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"

	"github.com/muster-agent/muster/appdef/hbox"
	"github.com/muster-agent/muster/shim/exit"
)

// siteFiles are the administrator's file by its names: HBox's, then XLearning's. Each system reads its own alone.
var siteFiles = [...]string{"hbox-site.xml", "xlearning-site.xml"}

// Site reads the administrator's defaults: in the folder of --conf-dir, else where the variables of HBox's and
// XLearning's clients say. A folder of a variable may be without the file, as in HBox.
func Site(named string) (hbox.Site, error) {
	dir := cmp.Or(named, os.Getenv("HBOX_CONF_DIR"), os.Getenv("XLEARNING_CONF_DIR"))
	if dir == "" {
		return hbox.Site{}, nil
	}
	for _, name := range siteFiles {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return hbox.Site{}, exit.With(exit.Usage, fmt.Errorf("hbox-submit: %w", err))
		}
		return hbox.ReadSite(path, text, getenv)
	}
	if named != "" {
		return hbox.Site{}, exit.Usagef("hbox-submit: --conf-dir %s: want a folder with %s or %s", named, siteFiles[0],
			siteFiles[1])
	}
	return hbox.Site{}, nil
}

// getenv is a variable, or what Java calls user.name and user.home: both are the user database's, whatever USER and
// HOME say.
func getenv(name string) string {
	if name != "user.name" && name != "user.home" {
		return os.Getenv(name)
	}
	me, err := user.Current()
	switch {
	case err != nil:
		return ""
	case name == "user.home":
		return me.HomeDir
	}
	return me.Username
}
