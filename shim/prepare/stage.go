package prepare

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/packages/slidershell"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
)

// stageItem replaces the file or folder of an item's name in the work folder.
func stageItem(ctx context.Context, work files.Folder, item plan.StageItem) error {
	name, err := work.Rel(item.To)
	if err != nil {
		return err
	}
	above, err := work.Make(filepath.Dir(item.To))
	if err != nil {
		return err
	}
	if err := above.Close(); err != nil {
		return err
	}
	switch item.Kind {
	case plan.StagePackage:
		target, err := filepath.Rel(filepath.Dir(item.To), item.From)
		if err != nil {
			return err
		}
		return errors.Join(work.RemoveAll(name), work.Symlink(target, name))
	case plan.StageFile:
		return work.CopyIn(item.From, name)
	case plan.StageLibrary:
		return slidershell.LayOut(work.Root, name)
	}
	return work.Replace(name, func(tmp *os.Root, dir string) error {
		return fillItem(ctx, item, tmp, filepath.Join(dir, files.Filled))
	})
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
