package hboxjob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/muster-agent/muster/appdef/hbox"
	"github.com/muster-agent/muster/shim/exit"
)

// siteFiles are the administrator's file by its names: HBox's, then XLearning's. Each system reads its own alone.
var siteFiles = [...]string{"hbox-site.xml", "xlearning-site.xml"}

// Site reads the administrator's defaults: in the folder of --conf-dir, else where the variables of HBox's and
// XLearning's clients say. A folder of a variable may be without the file, as in HBox.
func Site(ctx context.Context, named string) (hbox.Site, error) {
	return readSite(ctx, named, &account{uid: os.Getuid(), passwd: "/etc/passwd"})
}

func readSite(ctx context.Context, named string, user *account) (hbox.Site, error) {
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
		site, err := hbox.ReadSite(path, text, user.getenv(ctx))
		if err == nil && user.unknown != nil {
			err = exit.Usagef("hbox-submit: %s: %v", path, user.unknown)
		}
		return site, err
	}
	if named != "" {
		return hbox.Site{}, exit.Usagef("hbox-submit: --conf-dir %s: want a folder with %s or %s", named, siteFiles[0],
			siteFiles[1])
	}
	return hbox.Site{}, nil
}
