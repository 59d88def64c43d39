package prepare

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/packages/slidershell"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
)

// stageItem replaces the file or folder of an item's name in the work folder.
func stageItem(ctx context.Context, work files.Folder, item plan.StageItem) (err error) {
	name, err := work.Rel(item.To)
	if err != nil {
		return err
	}
	root, err := work.Make(filepath.Dir(item.To))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	above, last := files.Folder{Root: root}, filepath.Base(name)
	item.From = source(work, item.From)
	switch item.Kind {
	case plan.StagePackage:
		target, err := filepath.Rel(filepath.Dir(item.To), item.From)
		if err != nil {
			return err
		}
		return errors.Join(above.RemoveAll(last), above.Symlink(target, last))
	case plan.StageFile:
		return above.CopyIn(item.From, last)
	case plan.StageLibrary:
		return slidershell.LayOut(root, last)
	}
	return work.Replace(name, func(tmp *os.Root, dir string) error {
		return fillItem(ctx, item, tmp, filepath.Join(dir, files.Filled))
	})
}

// source is where an item of the package lies. The instance's folder has a link to the package, which its process may
// turn elsewhere while an agent that is root reads through it: so the package's own folder is read.
func source(work files.Folder, from string) string {
	name, err := work.Rel(from)
	if err != nil {
		return from // not in the work folder
	}
	if parts := strings.SplitN(name, "/", 4); len(parts) == 4 && parts[1] == "app" && parts[2] == "definition" {
		return filepath.Join(work.Name(), "package", parts[3])
	}
	return from
}

// fillItem makes files.Filled, at the path to, with an item's content: the files of a folder or of an archive.
func fillItem(ctx context.Context, item plan.StageItem, tmp *os.Root, to string) error {
	if item.Kind == plan.StageTarball || item.Kind == plan.StageZip {
		if _, err := packages.Extract(ctx, item.From, to, packages.ExtractOptions{Name: item.Name}); err != nil {
			return fault.Definition(err)
		}
		return nil
	}
	from, err := files.HostFolder(item.From)
	if err != nil {
		return fault.Definition(err)
	}
	if err := tmp.Mkdir(files.Filled, 0o755); err != nil {
		return err
	}
	return packages.Copy(from, to)
}
