package slider_test

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/slider"
)

// What a package says is said again by the documents that are written of it.
func TestWrittenPackageLoadsAsTheSameApp(t *testing.T) {
	for _, folder := range []string{
		"../../packages/catalog/handwriting", "../../packages/catalog/tensorflow", "../../tests/packages/tensorflow-seed",
		"../../tests/packages/tensorflow-published", "../../tests/scripts/testdata/kvstore",
	} {
		t.Run(path.Base(folder), func(t *testing.T) {
			fsys := os.DirFS(folder)
			app, found := slider.Load(fsys, slider.Options{})
			if bad := found.Errors(); len(bad) > 0 {
				t.Fatal(bad)
			}
			files, unsupported := slider.Write(app)
			if len(unsupported) != len(app.Kept)+len(app.Addons) {
				t.Errorf("unsupported %q, want one line for each of %v and %v", unsupported, app.Kept, app.Addons)
			}
			over := overlay{FS: fstest.MapFS{}, below: fsys}
			for name, text := range files {
				over.FS.(fstest.MapFS)[name] = &fstest.MapFile{Data: text}
			}
			again, found := slider.Load(over, slider.Options{})
			if bad := found.Errors(); len(bad) > 0 {
				t.Fatal(bad)
			}
			ignore := cmpopts.IgnoreFields(appdef.App{}, "Origins", "Places", "Warnings", "Kept", "Defaults", "Config", "Schema")
			sections := cmpopts.IgnoreFields(appdef.Component{}, "Config", "Resources")
			if diff := cmp.Diff(again, app, ignore, sections, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("written and loaded again (-got +want):\n%s", diff)
			}
			for i, c := range app.Components {
				for key, text := range c.Config {
					if got := again.Components[i].Config[key]; got != text {
						t.Errorf("%s %s: got %q, want %q", c.Name, key, got, text)
					}
				}
			}
		})
	}
}

// overlay is the written documents over the package's own files: an App holds no files.
type overlay struct {
	FS    fs.FS
	below fs.FS
}

func (o overlay) Open(name string) (fs.File, error) {
	f, err := o.FS.Open(name)
	documents := []string{"metainfo.json", "metainfo.xml", "appConfig.json", "appConfig.default.json", "appConfig-default.json", "resources.json", "resources.default.json", "resources-default.json"}
	if err == nil || slices.Contains(documents, name) {
		return f, err
	}
	return o.below.Open(name)
}
