package inspect

import (
	"fmt"
	"io"
	"io/fs"
	"strings"
	"text/tabwriter"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/slider"
	"github.com/muster-agent/muster/packages/catalog"
)

// Listing is the answer of muster package ls --json.
type Listing struct {
	Version  int     `json:"version"`
	Packages []entry `json:"packages"`
}

// entry is one package of the catalog.
type entry struct {
	App        string      `json:"app"` // what APP is on a command line
	Name       string      `json:"name"`
	Release    string      `json:"release"`
	About      string      `json:"about"`
	Framework  string      `json:"framework"`
	Components []component `json:"components"`
}

// Catalog lists the packages that muster carries.
func Catalog() (Listing, error) {
	list := Listing{Version: 1, Packages: []entry{}}
	for _, name := range catalog.Names() {
		files, err := catalog.Open(name)
		if err != nil {
			return list, err
		}
		app, found := slider.Load(files, slider.Options{Name: name})
		if bad := found.Errors(); len(bad) > 0 {
			return list, fmt.Errorf("catalog package %s: %w", name, bad)
		}
		list.Packages = append(list.Packages, entry{
			App: "catalog:" + name, Name: app.Name, Release: app.Release, About: about(app, files),
			Framework: app.Settings.Framework, Components: componentsOf(app),
		})
	}
	return list, nil
}

// about is the definition's own description, else the first sentence of its README.
func about(app appdef.App, files fs.FS) string {
	text, err := fs.ReadFile(files, "README.md")
	if app.Comment != "" || err != nil {
		return app.Comment
	}
	for paragraph := range strings.SplitSeq(string(text), "\n\n") {
		if words := strings.Join(strings.Fields(paragraph), " "); words != "" && !strings.HasPrefix(words, "#") {
			sentence, _, _ := strings.Cut(words, ". ")
			return strings.TrimSuffix(sentence, ".")
		}
	}
	return ""
}

// Print writes the list for people.
func (l Listing) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "APP\tFRAMEWORK\tCOMPONENTS\tWHAT IT IS")
	for _, p := range l.Packages {
		var components []string
		for _, c := range p.Components {
			components = append(components, fmt.Sprintf("%s %d", c.Name, c.Instances))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", p.App, p.Framework, strings.Join(components, ", "), p.About)
	}
	return w.Flush()
}
