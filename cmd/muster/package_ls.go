package main

import (
	"fmt"
	"io"
	"io/fs"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/slider"
	"github.com/muster-agent/muster/packages/catalog"
	"github.com/muster-agent/muster/shim/exit"
)

// packageListing is the answer of muster package ls --json.
type packageListing struct {
	Version  int             `json:"version"`
	Packages []packageInList `json:"packages"`
}

// packageInList is one package of the catalog.
type packageInList struct {
	App        string             `json:"app"` // what APP is on a command line
	Name       string             `json:"name"`
	Release    string             `json:"release"`
	About      string             `json:"about"`
	Framework  string             `json:"framework"`
	Components []packageComponent `json:"components"`
}

func newPackageLs(s streams) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use: "ls [catalog]", Short: "List the app packages that muster carries", Args: atMost("catalog"),
		Example:   "  muster package ls\n  muster package ls catalog --json",
		ValidArgs: []string{"catalog"},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] != "catalog" {
				return exit.Usagef("package ls %s: want catalog, which is all there is to list", args[0])
			}
			return listCatalog(s.out, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print {packages} as JSON")
	return cmd
}

func listCatalog(out io.Writer, asJSON bool) error {
	list := packageListing{Version: 1, Packages: []packageInList{}}
	for _, name := range catalog.Names() {
		files, err := catalog.Open(name)
		if err != nil {
			return err
		}
		app, found := slider.Load(files, slider.Options{Name: name})
		if bad := exit.OfProblems(found); bad != nil {
			return fmt.Errorf("catalog package %s: %w", name, bad)
		}
		list.Packages = append(list.Packages, packageInList{
			App: "catalog:" + name, Name: app.Name, Release: app.Release, About: about(app, files), Framework: app.Settings.Framework,
			Components: packageComponents(app),
		})
	}
	if asJSON {
		return printJSON(out, list)
	}
	return list.print(out)
}

// about is the definition's own word, else the first sentence of its README.
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

func (l packageListing) print(out io.Writer) error {
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
