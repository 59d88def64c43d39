package prepare

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/packages/slidershell"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
)

// stageItem replaces the file or folder of an item's name in the instance's folder, which lies in the work folder.
func stageItem(ctx context.Context, work files.Folder, folder files.UserFolder, item plan.StageItem) error {
	name, err := folder.Rel(item.To)
	if err != nil {
		return err
	}
	item.From = source(work, item.From)
	return work.Replace(folder, name, func(tmp *os.Root, dir string) error {
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

// fillItem makes files.Filled, at the path to, with an item's content: a link to the package, a file, Slider's library,
// or the files of a folder or of an archive.
func fillItem(ctx context.Context, item plan.StageItem, tmp *os.Root, to string) error {
	switch item.Kind {
	case plan.StagePackage:
		target, err := filepath.Rel(filepath.Dir(item.To), item.From)
		if err != nil {
			return err
		}
		return tmp.Symlink(target, files.Filled)
	case plan.StageFile:
		return files.CopyIn(tmp, item.From)
	case plan.StageLibrary:
		return slidershell.LayOut(tmp, files.Filled)
	case plan.StageTarball, plan.StageZip:
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
