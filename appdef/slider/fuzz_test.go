package slider_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/slider"
)

// Whatever the documents are, Load answers: with problems, or with an App that has a digest which
// survives the registry; and Lint advises on whatever came of it.
func FuzzLoad(f *testing.F) {
	documents := func(name string) []byte {
		data, err := os.ReadFile("testdata/base/" + name)
		if err != nil {
			f.Fatal(err)
		}
		return data
	}
	meta, conf, res := documents("metainfo.json"), documents("appConfig.json"), documents("resources.json")
	f.Add(meta, conf, res, false)
	f.Add([]byte(fullXML), conf, res, true)
	f.Add([]byte(fullJSON), conf, res, false)
	paths, _ := filepath.Glob("testdata/invalid/*.txtar")
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		m, c, r, isXML := meta, conf, res, false
		for _, file := range archive.Files {
			switch file.Name {
			case "metainfo.json", "metainfo.xml":
				m, isXML = file.Data, file.Name == "metainfo.xml"
			case "appConfig.json":
				c = file.Data
			case "resources.json":
				r = file.Data
			}
		}
		f.Add(m, c, r, isXML)
	}
	f.Fuzz(func(t *testing.T, meta, conf, res []byte, isXML bool) {
		name := "metainfo.json"
		if isXML {
			name = "metainfo.xml"
		}
		files := fstest.MapFS{name: {Data: meta}, "appConfig.json": {Data: conf}, "resources.json": {Data: res}, "package/configuration/x.xml": {Data: meta}, "addons/phoenix/" + name: {Data: meta}}
		a, found := slider.Load(files, slider.Options{})
		for _, p := range append(found, slider.Lint(files, a)...) {
			if p.File == "" || p.Got == "" || p.Want == "" || p.Severity == "" {
				t.Errorf("an incomplete problem: %+v", p)
			}
		}
		def, err := appdef.Encode(a)
		if err != nil {
			t.Fatal(err)
		}
		back, err := appdef.Decode(def)
		if err != nil {
			t.Fatal(err)
		}
		if appdef.Digest(back) != appdef.Digest(a) {
			t.Error("the digest changes on the way through the registry")
		}
	})
}
