package plan

import (
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// stage lists what to bring into the instance's folder, in order: the package, then metainfo's packages as Slider's
// install_packages does, unless a script of the package does it. Names are relative to the definition's package/.
func (b *builder) stage(s *Script) []StageItem {
	root := b.req.root()
	items := []StageItem{{
		Name: "package", Kind: StagePackage,
		From: path.Join(Work, "package"), To: path.Join(root, "app/definition"),
	}}
	for _, name := range b.app.AppResources {
		items = append(items, StageItem{
			Name: name, Kind: StageFile,
			From: path.Join(root, "app/definition", name), To: b.brought("app/resources/"+path.Base(name), name),
		})
	}
	items = append(items, b.addons()...)
	if s != nil {
		items = append(items, StageItem{Name: "resource_management", Kind: StageLibrary, From: "muster", To: s.Library})
		if s.Has(CommandInstall) {
			return items
		}
	}
	for i, p := range b.app.Packages {
		where := spot(func() appdef.Place { return placeOf(b.app, "packages", strconv.Itoa(i)) })
		switch {
		case p.Type != StageFolder && p.Type != StageTarball && p.Type != StageZip:
			b.warn(where, "package type "+appdef.Quote(p.Type), "folder, tarball or zip",
				"packages of the operating system are not installed: put them into the image")
		case !fs.ValidPath(path.Clean(p.Name)):
			b.problem(where, appdef.Quote(p.Name), "a path inside package/", "")
		default:
			items = append(items, StageItem{
				Name: p.Name, Kind: p.Type,
				From: path.Join(root, "app/definition/package", p.Name), To: b.brought("app/install", p.Name),
			})
		}
	}
	return items
}

// brought is the path of a file or folder of the package in the instance's folder: the same path as in the package, or,
// for an HBox submission, its own name in the working directory.
func (b *builder) brought(place, name string) string {
	if b.app.Settings.HBox.Type != "" {
		place = path.Base(name)
	}
	return path.Join(b.req.root(), place)
}

// addons are the add-ons that the package itself contains; others have nothing to bring.
func (b *builder) addons() []StageItem {
	var items []StageItem
	for _, a := range b.app.Addons {
		if len(a.Components) == 0 || !fs.ValidPath(a.Path) {
			continue
		}
		kind := stageAddon
		if strings.HasSuffix(a.Path, ".zip") {
			kind = StageZip
		}
		items = append(items, StageItem{
			Name: a.Name, Kind: kind, From: path.Join(b.req.root(), "app/definition", a.Path),
			To: path.Join(b.req.root(), "addon/definition", "application.addon."+a.Name),
		})
	}
	return items
}
