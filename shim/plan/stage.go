package plan

import (
	"io/fs"
	"path"
	"strconv"

	"github.com/muster-agent/muster/appdef"
)

// The kinds of StageItem. A package item is a link to the unpacked package that all instances of
// this host share; a folder's content is copied into To, an archive's is unpacked there, both in
// the place of what To held.
const (
	StagePackage = "package"
	StageFolder  = "folder"
	StageTarball = "tarball"
	StageZip     = "zip"
	StageLibrary = "library" // what scripts import; From is its name
)

// stage lists what to bring into the instance's folder, in order: the package, then what Slider's
// install_packages does with metainfo's packages, unless a script of the package does it. Names are
// relative to the definition's package/.
func (b *builder) stage(s *Script) []StageItem {
	root := b.req.root()
	items := []StageItem{{
		Name: "package", Kind: StagePackage,
		From: path.Join(Work, "package"), To: path.Join(root, "app/definition"),
	}}
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
				From: path.Join(root, "app/definition/package", p.Name), To: path.Join(root, "app/install"),
			})
		}
	}
	return items
}
