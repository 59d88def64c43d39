package slider

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// Options are the changes of the command line to the package.
type Options struct {
	// Template and Resources replace the package's appConfig and resources.
	Template, Resources *File
	// Set are `[COMPONENT|global:]KEY=VALUE`, in order; the last wins. `yarn.*` goes into resources,
	// NAME in upper case without dots into App.Vars, the rest into appConfig.
	Set []string
	// Instances are `COMPONENT=N,…`; they win over Set.
	Instances []string
	// Name is the name of an app without one, such as its folder's name.
	Name string
	// Strict refuses what Slider itself does not check: no version, parts that the schema version lacks, repeated keys.
	Strict bool
}

// File is a document from outside the package. Name is what problems print.
type File struct {
	Name string
	Data []byte
}

// mostBytes limits one document.
const mostBytes = 8 << 20

// Load reads the app package in fsys, applies the options, and settles and validates the App. It always returns all
// problems, sorted. Without problems of severity error (Problems.Errors) the App can be planned; else it is as complete
// as it could be read. Problems.Usage tells whether the fault is in the command line (exit 64 instead of 65). Warnings
// are also in App.Warnings, the client's names in App.Vars.
func Load(fsys fs.FS, options Options) (appdef.App, appdef.Problems) {
	l := &loading{fsys: fsys, options: options, docker: map[int]cursor{}}
	l.app = appdef.App{
		Dialect: "slider", Kept: map[string]any{},
		Provenance: appdef.Provenance{
			Vars: map[string]string{}, Places: map[string]appdef.Place{}, Origins: map[string]string{},
		},
	}
	whole := l.readMetainfo()
	l.appConfig = l.conftree("appConfig", options.Template)
	l.resources = l.conftree("resources", options.Resources)
	if !whole && l.resources.missing { // an add-on, or no package: it needs none
		l.found = slices.DeleteFunc(l.found, func(p appdef.Problem) bool { return p.File == l.resources.root.doc.file })
	}
	l.override()
	l.dictionaries()
	l.links()
	if whole && l.appConfig.whole && l.resources.whole { // else missing parts would be reported as undefined
		l.settle()
	}
	if options.Strict {
		repeatsAreErrors(l.found)
	}
	found := l.found.Sort()
	l.app.Warnings = found.Warnings()
	return l.app, found
}

// repeatsAreErrors makes errors of the warnings about repeated keys.
func repeatsAreErrors(found appdef.Problems) {
	for i := range found {
		if found[i].Kind == appdef.RepeatedKey {
			found[i].Severity = appdef.SeverityError
		}
	}
}

// loading is one run of Load.
type loading struct {
	fsys    fs.FS
	options Options

	app       appdef.App
	doc       *document      // metainfo
	docker    map[int]cursor // the dockerContainers of a component, by its index
	appConfig *conftree
	resources *conftree
	found     appdef.Problems
}

// put notes where a part of the App was written.
func (l *loading) put(at appdef.Place, parts ...string) { l.app.Places[appdef.Pointer(parts...)] = at }

// keep stores a field that is accepted and ignored.
func (l *loading) keep(c cursor) {
	l.app.Kept["metainfo#"+c.pointer] = c.value()
}

// settle judges the App once all documents are read.
func (l *loading) settle() {
	names := l.app.ComponentNames()
	slices.Sort(names)
	names = slices.Compact(names)
	l.appConfig.strangers(names)
	l.resources.strangers(names)
	l.appConfig.appConfigKeys(l.app.Declared(""))
	l.resources.resourcesKeys()
	l.sections()
	l.grants()
	src := appdef.Sources{
		Config: l.appConfig.global, Resources: l.resources.global,
		ComponentConfig: l.appConfig.components, ComponentResources: l.resources.components,
	}
	l.failureBudget(src)
	l.dockers(src)
	l.credentials(src)
	variables(src)
	l.addons()
	l.resourceFiles()
	l.undeclared()
	l.found = append(l.found, appdef.Settle(&l.app, src)...)
	l.missingScripts()
	l.found = append(l.found, appdef.Validate(&l.app)...)
}

// readMetainfo reads metainfo.json, else metainfo.xml. It returns false if there is none.
func (l *loading) readMetainfo() bool {
	l.doc = &document{found: &l.found}
	name, data := l.first(l.doc, "metainfo.json", "metainfo.xml")
	if name == "" {
		return false
	}
	var root *node
	if path.Ext(name) == ".xml" {
		root = l.doc.parseXML(data)
	} else {
		root = l.doc.parseJSON(data)
	}
	if root == nil {
		return false
	}
	top := cursor{node: root, doc: l.doc}
	if root.kind != object {
		top.bad(string(root.kind), "an object", "")
		return false
	}
	return l.metainfo(top)
}

// conftree reads appConfig or resources: the replacement, else the first of the package's names.
func (l *loading) conftree(name string, replacement *File) *conftree {
	doc := &document{found: &l.found}
	tree := newConftree(name, doc)
	var data []byte
	if replacement != nil {
		doc.file, data = replacement.Name, trimBOM(replacement.Data)
		if len(data) > mostBytes {
			doc.add(doc.place("", 0).Problem(errLarge.Error(), "a definition", ""))
			return tree
		}
	} else if doc.file, data = l.first(doc, namesOf(name)...); doc.file == "" {
		doc.file = name + ".json"
		tree.whole, tree.missing = name == "appConfig", true
		return tree
	}
	if root := doc.parseJSON(data); root != nil {
		tree.read(l, root)
	}
	return tree
}

// first reads the first existing file. The document is named after it. Without any the name is empty, and for a
// mandatory document the problem is noted.
func (l *loading) first(doc *document, names ...string) (string, []byte) {
	return l.firstOf(l.fsys, doc, names...)
}

func (l *loading) firstOf(fsys fs.FS, doc *document, names ...string) (string, []byte) {
	for _, name := range names {
		data, err := readSmall(fsys, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		doc.file = name
		if err != nil {
			doc.add(doc.place("", 0).Problem(err.Error(), "a definition", ""))
			return "", nil
		}
		return name, trimBOM(data)
	}
	doc.file = names[0]
	if names[0] != "appConfig.json" { // an app may have nothing to configure
		doc.add(doc.place("", 0).Problem("no such file", strings.Join(names, " or "), absent(fsys, names)))
	}
	return "", nil
}

// absent says what would do where a package lacks a document: for a metainfo, a folder below that has one, or the
// template of which a build makes it.
func absent(fsys fs.FS, names []string) string {
	if names[0] != "metainfo.json" {
		return "it has the counts of instances; --resources FILE takes one from elsewhere"
	}
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return "the folder of an app package has it"
	}
	for _, e := range entries {
		if name := e.Name(); strings.HasPrefix(name, "metainfo") && !e.IsDir() {
			return name + " is there: the package's build makes metainfo" + path.Ext(name) +
				" of it; without one, copy it"
		}
		for _, name := range names {
			if _, err := fs.Stat(fsys, path.Join(e.Name(), name)); err == nil && e.IsDir() {
				return "the folder " + e.Name() + " has it, and is the package"
			}
		}
	}
	return "the folder of an app package has it"
}

// errLarge is the error of readSmall for a file over the limit.
var errLarge = errors.New("more than 8 MiB")

func readSmall(fsys fs.FS, name string) ([]byte, error) {
	// a pipe would wait for a writer
	if info, err := fs.Stat(fsys, name); err == nil && !info.Mode().IsRegular() {
		return nil, errors.New("no plain file")
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostBytes+1))
	if err == nil && len(data) > mostBytes {
		err = errLarge
	}
	return data, err
}

// trimBOM drops the mark that some editors put before UTF-8.
func trimBOM(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) }

// configurations are the folders of the dictionaries' defaults, the one that wins last: Slider reads the first of them.
var configurations = [...]string{"package/configuration", "configuration"}

// dictionaries reads the package's defaults: DIRECTORY/<dict>.xml.
func (l *loading) dictionaries() {
	for _, dir := range configurations {
		files, err := fs.Glob(l.fsys, dir+"/*.xml")
		if err != nil {
			continue // the pattern is right
		}
		for _, name := range files {
			l.dictionary(name)
		}
	}
}

func (l *loading) dictionary(name string) {
	doc := &document{file: name, found: &l.found}
	data, err := readSmall(l.fsys, name)
	if err != nil {
		doc.add(doc.place("", 0).Problem(err.Error(), "Hadoop's XML of properties", ""))
		return
	}
	values := doc.dictionary(trimBOM(data))
	if len(values) == 0 {
		return
	}
	dict := strings.TrimSuffix(path.Base(name), ".xml")
	if l.app.Defaults == nil {
		l.app.Defaults = map[string]map[string]string{}
	}
	if l.app.Defaults[dict] == nil {
		l.app.Defaults[dict] = map[string]string{}
	}
	maps.Copy(l.app.Defaults[dict], values)
	l.put(doc.place("", 0), "defaults", dict)
}

// undeclared reports dictionaries that no configFiles declares although they have a file, and those without any value.
func (l *loading) undeclared() {
	declared := l.app.Declared("")
	for _, dict := range sortedKeys(l.app.Defaults) {
		if !declared[dict] {
			l.found = append(l.found, l.app.Places[appdef.Pointer("defaults", dict)].Warning(
				"the dictionary "+appdef.Quote(dict)+", which no configFiles declares", "it in configFiles",
				"Slider does not read the file"))
		}
	}
	l.unfilled(l.app.ConfigFiles, l.app.Config, "config_files")
	for i, c := range l.app.Components {
		l.unfilled(c.ConfigFiles, c.Config, "components", strconv.Itoa(i), "config_files")
	}
}

// unfilled reports declared dictionaries without a file and without a value.
func (l *loading) unfilled(files []appdef.ConfigFile, config map[string]string, at ...string) {
	for n, f := range files {
		has := func(config map[string]string) bool {
			for key := range config {
				if strings.HasPrefix(key, "site."+f.Dictionary+".") {
					return true
				}
			}
			return false
		}
		if f.Dictionary == "" || l.app.Defaults[f.Dictionary] != nil || has(config) ||
			slices.ContainsFunc(l.app.Components, func(c appdef.Component) bool { return has(c.Config) }) {
			continue
		}
		place := l.app.Places[appdef.Pointer(append(slices.Clone(at), strconv.Itoa(n))...)]
		l.found = append(l.found, place.Warning("the dictionary "+appdef.Quote(f.Dictionary)+" without a value",
			"configuration/"+f.Dictionary+".xml or a value site."+f.Dictionary+".KEY in appConfig",
			"scripts get it without keys"))
	}
}
