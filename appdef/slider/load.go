package slider

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
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
	// Strict refuses what Slider itself does not check: no version, parts that the schema version lacks.
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
	l.override()
	l.dictionaries()
	l.links()
	if whole && l.appConfig.whole && l.resources.whole { // else missing parts would be reported as undefined
		l.settle()
	}
	found := l.found.Sort()
	l.app.Warnings = found.Warnings()
	return l.app, found
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
	l.appConfig.appConfigKeys()
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
	l.addons()
	l.resourceFiles()
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
		tree.whole = name == "appConfig"
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
		doc.add(doc.place("", 0).Problem("no such file", strings.Join(names, " or "),
			"the folder of an app package has it"))
	}
	return "", nil
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

// dictionaries reads the package's defaults, package/configuration/<dict>.xml.
func (l *loading) dictionaries() {
	files, err := fs.Glob(l.fsys, "package/configuration/*.xml")
	if err != nil || len(files) == 0 {
		return
	}
	l.app.Defaults = map[string]map[string]string{}
	for _, name := range files {
		doc := &document{file: name, found: &l.found}
		data, err := readSmall(l.fsys, name)
		if err != nil {
			doc.add(doc.place("", 0).Problem(err.Error(), "Hadoop's XML of properties", ""))
		} else if values := doc.dictionary(trimBOM(data)); len(values) > 0 {
			l.app.Defaults[strings.TrimSuffix(path.Base(name), ".xml")] = values
		}
	}
}
