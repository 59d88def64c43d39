package pai_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/pai"
)

// Whatever the document is, Load answers: with problems that say where, or with a job that is written and read again as the
// same one.
func FuzzLoad(f *testing.F) {
	for _, data := range samples(f) {
		f.Add(data, "", false)
		f.Add(data, appdef.PAI1, true)
	}
	paths, _ := filepath.Glob("testdata/invalid/*.txtar")
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			if strings.HasPrefix(file.Name, "job.") {
				f.Add(file.Data, "", false)
			}
		}
	}
	f.Add([]byte(`{"jobName":"j","image":"i","taskRoles":[{"name":"a.b","command":"c","portList":[{"label":"http","portNumber":12,"beginAt":80},{"label":"a.2"}]}],`+
		`"jobEnvs":{"A":"${x}"},"extras":{"a/b~":[1e400],"a.b:muster.shm":"9"}}`), appdef.PAI05, false)
	f.Fuzz(func(t *testing.T, data []byte, version string, user bool) {
		pai.Is(data)
		app, found := pai.Load(data, pai.Options{Version: version, OutputUser: user})
		for _, p := range found {
			if p.File != "job.json" && p.File != "--pai-version" || p.Got == "" || p.Want == "" || p.Severity == "" {
				t.Errorf("an incomplete problem: %+v", p)
			}
		}
		if len(found.Errors()) > 0 {
			pai.Write(app)
			return
		}
		if !pai.Is(data) {
			t.Error("it loads, and is none")
		}
		same(t, app)
	})
}
