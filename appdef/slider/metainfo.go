package slider

import (
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// metainfo reads the document that names components, exports and packages into the App. It returns false without an
// application in it.
func (l *loading) metainfo(root cursor) bool {
	root.knows(fields[Metainfo]())
	l.schemaVersion(root)
	app, ok := root.object("application")
	if !ok {
		if _, addon := root.get("applicationPackage"); addon {
			root.bad("an add-on package", "an application", "add-ons are added to an application, not run")
		} else if root.member("application") == nil {
			root.bad("no application", "the application, with its name, version and components", "")
		}
		return false
	}
	app.knows(fields[Application]())
	l.name(app)
	l.app.Release, l.app.Comment = app.text("version"), app.text("comment")
	l.app.ExportedConfigs = commaList(app.text("exportedConfigs"))
	l.app.ConfigFiles = l.configFiles(app, nil)
	l.exportGroups(app)
	l.packages(app)
	l.put(app.at("components"), "components")
	if _, ok := app.get("components"); !ok {
		l.put(app.place(), "components")
	}
	for _, c := range app.objects("components") {
		l.component(c)
	}
	l.commandOrders(app)
	l.schemaRules(app)
	if addon, ok := root.object("applicationPackage"); ok {
		l.addon(addon, appdef.Addon{Path: "."}, l.fsys)
	}
	return true
}

func (l *loading) schemaVersion(root cursor) {
	l.app.Schema = root.text("schemaVersion")
	switch l.app.Schema {
	case "2.0", "2.1":
	case "":
		root.warn("no schemaVersion", "2.0 or 2.1", "it is read as 2.1")
		l.app.Schema = "2.1"
	default:
		l.doc.add(root.at("schemaVersion").Problem(appdef.Quote(l.app.Schema), "2.0 or 2.1", ""))
	}
}

func (l *loading) name(app cursor) {
	l.app.Name = app.text("name")
	if m, ok := app.get("name"); l.app.Name != "" || ok && !m.scalar() {
		return
	}
	if l.options.Name == "" {
		app.bad("no name", "the application's name", "")
		return
	}
	app.warn("no name", "the application's name", "it is called "+l.options.Name)
	l.app.Name = l.options.Name
}

// schemaRules reports parts that the schema version lacks. Slider checks that for add-ons only, so it stops the load
// only if the caller is strict.
func (l *loading) schemaRules(app cursor) {
	report := func(at appdef.Place, got, want string) {
		p := at.Warning(got, want, "Slider reads it all the same")
		if l.options.Strict {
			p = at.Problem(got, want, "")
		}
		l.doc.add(p)
	}
	if l.options.Strict && app.text("version") == "" {
		app.bad("no version", "the application's version", "")
	}
	if _, ok := app.get("packages"); ok && l.app.Schema == "2.0" {
		report(app.at("packages"), "packages in schema 2.0", "osSpecifics, or schemaVersion 2.1")
	}
	if _, ok := app.get("osSpecifics"); ok && l.app.Schema == "2.1" {
		report(app.at("osSpecifics"), "osSpecifics in schema 2.1", "packages, or schemaVersion 2.0")
	}
	for _, c := range app.objectsQuiet("components") {
		if _, ok := c.get("commands"); ok && l.app.Schema == "2.0" {
			report(c.at("commands"), "commands in schema 2.0", "a commandScript, or schemaVersion 2.1")
		}
		if t, ok := c.get("type"); ok && t.scalar() && l.app.Schema == "2.0" &&
			strings.Contains(strings.ToLower(t.node.text), "docker") {
			report(t.place(), "the type DOCKER in schema 2.0", "schemaVersion 2.1")
		}
	}
}

// objectsQuiet is objects for a list that was read and judged before.
func (c cursor) objectsQuiet(name string) []cursor {
	m, ok := c.get(name)
	if !ok || m.kind != array {
		return nil
	}
	return slices.DeleteFunc(c.list(name), func(item cursor) bool { return item.kind != object })
}

func commaList(text string) []string {
	var list []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// configFiles adds the dictionaries that an application, a component or its container declares to files; at is the
// pointer of the application or the component in the App.
func (l *loading) configFiles(c cursor, files []appdef.ConfigFile, at ...string) []appdef.ConfigFile {
	types := []string{"xml", "hadoop-xml", "properties", "json", "yaml", "env", "template"}
	for _, f := range c.objects("configFiles") {
		f.knows(fields[ConfigFile]())
		file := appdef.ConfigFile{
			Type: f.required("type"), FileName: f.required("fileName"),
			Dictionary: f.required("dictionaryName"),
		}
		if file.Type != "" && !slices.Contains(types, file.Type) {
			f.doc.add(f.at("type").Warning(appdef.Quote(file.Type), "one of "+strings.Join(types, ", "),
				appdef.DidYouMean(file.Type, types)))
		}
		l.put(f.place(), append(slices.Clone(at), "config_files", strconv.Itoa(len(files)))...)
		files = append(files, file)
	}
	return files
}

func (l *loading) exportGroups(app cursor) {
	for g, group := range app.objects("exportGroups") {
		group.knows(fields[ExportGroup]())
		l.put(group.at("name"), "export_groups", strconv.Itoa(g), "name")
		read := appdef.ExportGroup{Name: group.required("name")}
		for e, export := range group.objects("exports") {
			export.knows(fields[Export]())
			l.put(export.at("name"), "export_groups", strconv.Itoa(g), "exports", strconv.Itoa(e), "name")
			l.put(export.at("value"), "export_groups", strconv.Itoa(g), "exports", strconv.Itoa(e), "value")
			read.Exports = append(read.Exports, appdef.Export{
				Name:  export.required("name"),
				Value: export.required("value"),
			})
		}
		l.app.ExportGroups = append(l.app.ExportGroups, read)
	}
}

// packages reads packages (2.1), and the osSpecifics for any system (2.0). Packages of an operating system are kept and
// reported: agents install none.
func (l *loading) packages(app cursor) {
	l.packageList(app)
	for _, system := range app.objects("osSpecifics") {
		system.knows(fields[OSSpecific]())
		if osType := system.required("osType"); osType == "any" {
			l.packageList(system)
		} else if osType != "" {
			l.keep(system)
			system.warn("packages for the system "+appdef.Quote(osType), `osType "any"`,
				"they are kept and not installed")
		}
	}
}

func (l *loading) packageList(c cursor) {
	for _, p := range c.objects("packages") {
		p.knows(fields[Package]())
		read := appdef.Package{Type: p.required("type"), Name: p.required("name")}
		switch read.Type {
		case "folder", "tarball", "zip":
			inside(p, "name", read.Name)
			l.there(p, read)
			l.app.Packages = append(l.app.Packages, read)
		case "":
		default:
			l.keep(p)
			l.doc.add(p.at("type").Warning(appdef.Quote(read.Type), "folder, tarball or zip", typeHint(read)))
		}
	}
}

// typeHint says what would do in place of a type that is not brought.
func typeHint(p appdef.Package) string {
	systems := []string{"rpm", "deb", "yum", "apt", "apt-get", "zypper", "msi"}
	switch {
	case slices.Contains(systems, strings.ToLower(p.Type)):
		return "packages of the operating system are kept and not installed: put them into the image"
	case strings.HasSuffix(p.Name, ".zip"):
		return "did you mean zip?"
	case strings.HasSuffix(p.Name, ".jar"):
		return "it is not brought: a folder brings it as it is"
	case strings.Contains(p.Name, ".tar") || strings.HasSuffix(p.Name, ".tgz"):
		return "did you mean tarball?"
	}
	return orElse(appdef.DidYouMean(p.Type, []string{"folder", "tarball", "zip"}),
		"it is kept and not brought: Slider takes other types for packages of the operating system")
}

// there reports a package that the app package lacks.
func (l *loading) there(c cursor, p appdef.Package) {
	name := path.Join("package", p.Name)
	if p.Name == "" || !fs.ValidPath(p.Name) {
		return
	}
	info, err := fs.Stat(l.fsys, name)
	switch {
	case err != nil:
		c.doc.add(c.at("name").Problem("no "+p.Type+" "+appdef.Quote(name), "a "+p.Type+" in package/", l.nearFile(p)))
	case info.IsDir() != (p.Type == "folder"):
		c.doc.add(c.at("name").Problem("the "+kindOf(info)+" "+appdef.Quote(name)+" as a "+p.Type,
			"a "+p.Type+" in package/", ""))
	case p.Type != "folder":
		l.unpacks(c, p)
	}
}

// unpacks warns of an archive that the scripts' library does not unpack: it takes an archive for a zip if the name
// ends so, else for a tarball.
func (l *loading) unpacks(c cursor, p appdef.Package) {
	head := make([]byte, 2)
	f, err := l.fsys.Open(path.Join("package", p.Name))
	if err != nil {
		return // whoever brings it reports it
	}
	defer f.Close()
	if _, err := io.ReadFull(f, head); err != nil {
		return // too short for either
	}
	switch is, called := string(head) == "PK", strings.HasSuffix(strings.ToLower(p.Name), "zip"); {
	case is && !called:
		c.doc.add(c.at("name").Warning("the zip "+appdef.Quote(p.Name), "a name that ends with .zip",
			"the INSTALL of a script takes it for a tarball by its name, and fails"))
	case !is && called:
		c.doc.add(c.at("name").Warning(appdef.Quote(p.Name)+", which is no zip", "a zip, or another name",
			"the INSTALL of a script takes it for a zip by its name, and fails"))
	}
}

// nearFile says what would do where a package of metainfo is not there.
func (l *loading) nearFile(p appdef.Package) string {
	if strings.Contains(p.Name, "${") {
		return "the package's build fills in what is between ${ and }: take what it has built, or write the name"
	}
	dir := path.Dir(p.Name)
	entries, err := fs.ReadDir(l.fsys, path.Join("package", dir))
	if err != nil {
		return "put it there: it is the application's own, and is not fetched"
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = path.Join(dir, e.Name())
	}
	return orElse(appdef.DidYouMean(p.Name, names), "put it there: it is the application's own, and is not fetched")
}

func kindOf(info fs.FileInfo) string {
	if info.IsDir() {
		return "folder"
	}
	return "file"
}

// inside reports a path that leads out of the package.
func inside(c cursor, name, path string) {
	if path == "" {
		return
	}
	if strings.HasPrefix(path, "/") || slices.Contains(strings.Split(path, "/"), "..") ||
		strings.ContainsAny(path, "\\\x00") {
		c.doc.add(c.at(name).Problem(appdef.Quote(path), "a path inside the package, with / and without ..", ""))
	}
}

func (l *loading) component(c cursor) {
	index := strconv.Itoa(len(l.app.Components))
	c.knows(fields[Component]())
	l.put(c.place(), "components", index)
	for part, name := range map[string]string{
		"name": "name", "comp_exports": "compExports",
		"app_exports": "appExports", "min_instances": "minInstanceCount", "command_script": "commandScript",
		"commands": "commands",
	} {
		l.put(c.at(name), "components", index, part)
	}
	read := appdef.Component{
		Name: c.required("name"), Category: category(c), Type: componentType(c),
		MinInstances: c.whole("minInstanceCount", 0, 0), MaxInstances: c.whole("maxInstanceCount", 0, -1),
		Scripts: appdef.Scripts{
			PublishConfig: yes(c, "publishConfig"), AutoStart: yes(c, "autoStartOnFailure"),
			ConfigFiles:   l.configFiles(c, nil, "components", index),
			CommandScript: l.commandScript(c), Commands: l.commands(c),
		},
	}
	read.CompExports, read.AppExports = l.exportRefs(c, "compExports"), l.exportRefs(c, "appExports")
	for n, export := range c.objects("componentExports") {
		export.knows(fields[Export]())
		l.put(export.at("value"), "components", index, "component_exports", strconv.Itoa(n), "value")
		read.ComponentExports = append(read.ComponentExports,
			appdef.Export{Name: export.required("name"), Value: export.required("value")})
	}
	if script, ok := c.get("commandScript"); ok && script.kind == object {
		l.put(script.at("script"), "components", index, "command_script", "script")
	}
	if docker, ok := c.get("dockerContainers"); ok {
		l.dockerContainers(len(l.app.Components), read, docker)
	}
	l.app.Components = append(l.app.Components, read)
}

func category(c cursor) string {
	categories := []string{"MASTER", "SLAVE", "CLIENT"}
	read := c.text("category")
	if read == "" {
		return "MASTER"
	}
	if !slices.Contains(categories, read) {
		c.doc.add(c.at("category").Problem(appdef.Quote(read), "MASTER, SLAVE or CLIENT", spelling(read, categories)))
	}
	return read
}

func componentType(c cursor) string {
	types := []string{"STANDARD", "DOCKER"}
	read := c.text("type")
	switch strings.ToUpper(read) {
	case "", "STANDARD":
		return "STANDARD"
	case "DOCKER", "YARN_DOCKER":
		return "DOCKER"
	}
	c.doc.add(c.at("type").Problem(appdef.Quote(read), "STANDARD or DOCKER", spelling(read, types)))
	return "STANDARD"
}

func spelling(read string, names []string) string {
	if slices.Contains(names, strings.ToUpper(read)) {
		return "in upper case"
	}
	return appdef.DidYouMean(read, names)
}

// yes reads a boolean as Slider does, in any letter case.
func yes(c cursor, name string) bool {
	switch read := c.text(name); strings.ToLower(read) {
	case "true":
		return true
	case "", "false":
	default:
		c.doc.add(c.at(name).Problem(appdef.Quote(read), "true or false", ""))
	}
	return false
}

// exportRefs reads a comma list of `group-export`.
func (l *loading) exportRefs(c cursor, name string) []appdef.ExportRef {
	var refs []appdef.ExportRef
	for _, part := range commaList(c.text(name)) {
		refs = append(refs, l.app.ParseExportRef(part))
	}
	return refs
}

func orElse(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

// commandOrders reads `COMP-START` and `COMP2-STARTED,COMP3-INSTALLED`, each split at its last dash.
func (l *loading) commandOrders(app cursor) {
	for n, o := range app.objects("commandOrders") {
		o.knows(fields[CommandOrder]())
		l.put(o.at("command"), "command_orders", strconv.Itoa(n), "command")
		l.put(o.at("requires"), "command_orders", strconv.Itoa(n), "requires")
		var order appdef.CommandOrder
		order.Component, order.Command = orderPart(o, "command", o.required("command"), "COMPONENT-START")
		requires := commaList(o.required("requires"))
		for _, part := range requires {
			var r appdef.Requirement
			r.Component, r.State = orderPart(o, "requires", part, "COMPONENT-STARTED or COMPONENT-INSTALLED")
			order.Requires = append(order.Requires, r)
		}
		l.app.CommandOrders = append(l.app.CommandOrders, order)
	}
}

func orderPart(o cursor, name, text, want string) (component, word string) {
	if text == "" {
		return "", ""
	}
	at := strings.LastIndexByte(text, '-')
	if at <= 0 || at == len(text)-1 {
		o.doc.add(o.at(name).Problem(appdef.Quote(text), want, ""))
		return "", ""
	}
	return text[:at], text[at+1:]
}
