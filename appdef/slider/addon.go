package slider

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// Add-on packages bring commands to components of another application. appConfig has application.addons, a list of
// keys, and for each an application.addon.NAME with the path of the add-on's zip. Their metainfo has an
// applicationPackage in place of an application. Of their commands INSTALL alone runs, as under Slider.

// everyComponent is the name by which an add-on means all components.
const everyComponent = "ALL"

// addons reads the add-ons that appConfig names: those of application.addons, and others with a key.
func (l *loading) addons() {
	keys := commaList(l.appConfig.global[addonsKey].Text)
	for _, key := range sortedKeys(l.appConfig.global) {
		if strings.HasPrefix(key, addonPrefix) && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		v, ok := l.appConfig.global[key]
		if !ok {
			v.Place = l.appConfig.global[addonsKey].Place
			l.found = append(l.found, v.Problem("the add-on "+appdef.Quote(key)+", which has no key",
				"the key "+key+" with its path", appdef.DidYouMean(key, sortedKeys(l.appConfig.global))))
			continue
		}
		l.namedAddon(strings.TrimPrefix(key, addonPrefix), v)
	}
}

// namedAddon reads the add-on at a path.
func (l *loading) namedAddon(name string, v appdef.Value) {
	read := appdef.Addon{Name: name, Path: v.Text}
	inside, prefix := l.addonFiles(v.Text)
	if inside == nil {
		l.put(v.Place, "addons", strconv.Itoa(len(l.app.Addons)))
		l.app.Addons = append(l.app.Addons, read)
		l.found = append(l.found, v.Warning("the add-on "+appdef.Quote(v.Text),
			"a folder or zip with a metainfo, in the package", "the package does not have it: what it would do is "+
				"not known and not done"))
		return
	}
	doc := &document{found: &l.found}
	read.Path = strings.TrimSuffix(prefix, "/")
	file, data := l.firstOf(inside, doc, "metainfo.json", "metainfo.xml")
	doc.file = prefix + doc.file
	var root *node
	switch {
	case file == "":
		return
	case path.Ext(file) == ".xml":
		root = doc.parseXML(data)
	default:
		root = doc.parseJSON(data)
	}
	if root == nil || root.kind != object {
		return
	}
	top := cursor{node: root, doc: doc}
	top.knows(fields[Metainfo]())
	pkg, ok := top.object("applicationPackage")
	if !ok {
		top.bad("no applicationPackage", "one, in an add-on's metainfo", "")
		return
	}
	l.addon(pkg, read, inside)
}

// addonFiles opens the add-on at a path relative to the package or to its package/: a folder, or a zip. prefix is what
// problems print before its file names. It returns nil if there is none.
func (l *loading) addonFiles(at string) (inside fs.FS, prefix string) {
	at = path.Clean(at)
	if !fs.ValidPath(at) || at == "." {
		return nil, ""
	}
	for _, name := range []string{at, path.Join("package", at)} {
		info, err := fs.Stat(l.fsys, name)
		if err != nil {
			continue
		}
		if info.IsDir() {
			inside, err = fs.Sub(l.fsys, name)
		} else {
			inside, err = zipFiles(l.fsys, name)
		}
		if err == nil {
			return inside, name + "/"
		}
	}
	return nil, ""
}

func zipFiles(fsys fs.FS, name string) (fs.FS, error) {
	data, err := readSmall(fsys, name)
	if err != nil {
		return nil, err
	}
	return zip.NewReader(bytes.NewReader(data), int64(len(data)))
}

// addon reads an applicationPackage into the App.
func (l *loading) addon(c cursor, read appdef.Addon, files fs.FS) {
	c.knows(fields[AddonPackage]())
	if name := c.required("name"); read.Name == "" {
		read.Name = name
	}
	read.Version = c.text("version")
	of := &loading{fsys: files, found: nil}
	for _, part := range c.objects("components") {
		part.knows(fields[AddonComponent]())
		name := part.required("name")
		read.Components = append(read.Components, appdef.AddonComponent{
			Name: name, Script: of.addonScript(part, l.addonRuns(name)), Commands: of.commands(part),
		})
	}
	if len(read.Components) == 0 {
		c.bad("no components", "at least one component", "")
	}
	l.put(c.place(), "addons", strconv.Itoa(len(l.app.Addons)))
	l.app.Addons = append(l.app.Addons, read)
	l.addonComponents(c, read)
}

// addonScript reads the script of an add-on's component. The add-on must have it where its INSTALL runs; where it does
// not, in a CLIENT and in components that the app does not have, Slider never asked for it.
func (l *loading) addonScript(part cursor, runs bool) *appdef.CommandScript {
	read := l.commandScript(part)
	if read == nil || !read.Missing || !fs.ValidPath(read.Script) {
		return read
	}
	if script, ok := part.object("commandScript"); ok {
		missing := l.noScript(script.at("script"), read.Script)
		if !runs {
			missing.Severity = appdef.SeverityWarning
		}
		script.doc.add(missing)
	}
	return read
}

// addonRuns tells whether a component that runs has the add-on's part of that name.
func (l *loading) addonRuns(name string) bool {
	return name == everyComponent || slices.ContainsFunc(l.app.Components, func(c appdef.Component) bool {
		return c.Name == name && c.Category != "CLIENT"
	})
}

// addonComponents reports what of the add-on does not run, and names of components that the app does not have.
func (l *loading) addonComponents(c cursor, read appdef.Addon) {
	known := l.app.ComponentNames()
	for _, part := range read.Components {
		if part.Name != everyComponent && len(known) > 0 && !slices.Contains(known, part.Name) {
			c.warn("the add-on's component "+appdef.Quote(part.Name),
				everyComponent+" or one of "+strings.Join(known, ", "), appdef.DidYouMean(part.Name, known))
		}
		for _, own := range part.Commands {
			if own.Name != "INSTALL" {
				c.warn("the command "+appdef.Quote(own.Name)+" of the add-on "+appdef.Quote(read.Name), "INSTALL",
					"an add-on's other commands are not run, as under Slider")
			}
		}
	}
	if read.Path == "." {
		c.warn("the add-on "+appdef.Quote(read.Name)+" beside an application", "a package of its own",
			"the application alone runs, as under Slider")
	}
}

// resourceFiles reads application.resources: each instance gets these files of the package, and of stores. Under Slider
// all of them are in the cluster's file system.
func (l *loading) resourceFiles() {
	v, ok := l.appConfig.global[resourcesKey]
	if !ok {
		return
	}
	l.put(v.Place, "app_resources")
	taken := map[string]string{}
	for _, name := range commaList(v.Text) {
		file, ok := l.resourceFile(name)
		switch first, twice := taken[appdef.ResourceName(file)]; {
		case ok && appdef.ResourceName(file) == "":
			l.found = append(l.found, v.Problem("the file "+appdef.Quote(name), "a path that ends with a file's name",
				"the file lies in app/resources by its own name"))
		case !ok:
			l.found = append(l.found, v.Problem("the file "+appdef.Quote(name), "a file in the package, or a URL: "+
				"hdfs:, http:, https: or file:", "it is not there, and could not be brought to app/resources"))
		case twice:
			l.found = append(l.found, v.Warning("a second file "+appdef.Quote(appdef.ResourceName(file)),
				"names that differ", first+" is the first, which counts"))
		default:
			taken[appdef.ResourceName(file)] = name
			l.app.AppResources = append(l.app.AppResources, file)
		}
	}
}

// resourceFile finds a file that is named relative to the package, or to its package/. A URL and an absolute path are
// those of a store; what lies there is seen when it is brought.
func (l *loading) resourceFile(name string) (string, bool) {
	if !appdef.InPackage(name) {
		return name, true
	}
	name = path.Clean(name)
	if !fs.ValidPath(name) {
		return "", false
	}
	for _, at := range []string{name, path.Join("package", name)} {
		if info, err := fs.Stat(l.fsys, at); err == nil && info.Mode().IsRegular() {
			return at, true
		}
	}
	return "", false
}
