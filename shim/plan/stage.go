package plan

import (
	"io/fs"
	"path"
	"regexp"
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
	items = append(append(items, b.resources()...), b.addons()...)
	if s != nil {
		items = append(items, StageItem{Name: "resource_management", Kind: StageLibrary, From: "muster", To: s.Library})
		if s.Has(CommandInstall) {
			return items
		}
	}
	for i, p := range b.app.Packages {
		where := spot(func() appdef.Place { return placeOf(b.app, "packages", strconv.Itoa(i)) })
		switch {
		case p.Type != StageFolder && p.Type != StageTarball && p.Type != StageZip: // the loader has warned of it
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

// resources are the files of application.resources, of the package and of stores.
func (b *builder) resources() []StageItem {
	const key = "application.resources"
	var items []StageItem
	for _, name := range b.app.AppResources {
		to := b.brought("app/resources/"+appdef.ResourceName(name), name)
		if schemeOf(name) == "" && !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "${") {
			from := path.Join(b.req.root(), "app/definition", name)
			items = append(items, StageItem{Name: name, Kind: StageFile, From: from, To: to})
			continue
		}
		url, digest, pinned := strings.Cut(name, "#sha256=")
		digest = strings.ToLower(digest)
		if pinned && !digestForm.MatchString(digest) {
			b.problem(b.key(key), appdef.Quote(name), "64 hex digits after #sha256=", "")
			continue
		}
		if from, ok := b.location(key, b.text(key, url)); ok {
			items = append(items, StageItem{
				Name: appdef.ResourceName(name), Kind: StageResource, From: from, To: to, Digest: digest,
			})
		}
	}
	return items
}

// digestForm is a SHA-256 in hexadecimal.
var digestForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

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
		if !laidOut(a) {
			continue
		}
		kind := stageAddon
		if strings.HasSuffix(a.Path, ".zip") {
			kind = StageZip
		}
		items = append(items, StageItem{
			Name: a.Name, Kind: kind, From: path.Join(b.req.root(), "app/definition", a.Path),
			To: b.addonRoot(a),
		})
	}
	return items
}

// laidOut tells whether an add-on lies in the package, as a package of its own.
func laidOut(a appdef.Addon) bool {
	return len(a.Components) > 0 && fs.ValidPath(a.Path) && a.Path != "."
}

func (b *builder) addonRoot(a appdef.Addon) string {
	return path.Join(b.req.root(), "addon/definition", "application.addon."+a.Name)
}
