package python2

import (
	_ "embed"
	"encoding/json"
	"io/fs"
	"path"
	"regexp"
	"slices"
)

//go:embed removed.json
var table string

//go:embed names.py
var names string

// Names is a piece of Python: REMOVED, own_names(tree), Siblings and what runs 2to3.
var Names = "REMOVED = " + table + names

// Removed is what Python 3 does not have, each with what to write instead.
type Removed struct {
	Builtins map[string]string            `json:"builtins"`
	Methods  map[string]string            `json:"methods"`
	Modules  map[string]string            `json:"modules"` // the module to import
	Members  map[string]map[string]string `json:"members"` // of modules that are still there
}

// Table is what 2to3 changes, and what it leaves to the author. What a later Python 3 lacks is in Names alone.
func Table() (changed, left Removed) {
	var both struct{ Changed, Left Removed }
	if err := json.Unmarshal([]byte(table), &both); err != nil {
		panic("python2: removed.json: " + err.Error())
	}
	return both.Changed, both.Left
}

var program = regexp.MustCompile(`\bscripts/[\w./-]+\.py\b`)

// Programs are the folders of the scripts that a package's metainfo names, such as package/scripts/lib: Python finds
// modules in them. The metainfo is taken as text, for that of an old package may have errors.
func Programs(tree fs.FS) []string {
	folders := []string{}
	for _, name := range []string{"metainfo.xml", "metainfo.json"} {
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			continue
		}
		for _, script := range program.FindAllString(string(text), -1) {
			folders = append(folders, path.Dir(path.Join("package", script)))
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}
