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
	f.Add(secondSample(f), "", false)
	f.Add(secondJob("taskRetryCount: 2", "<% $parameters.a[0] %>", "parameters: {a: [1]}\nextras: {gangAllocation: false, muster.hold: 5}"), appdef.PAI1, false)
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
		if app.JobSecrets == nil {
			same(t, app)
			return
		}
		job, _ := pai.Write(app) // of the second protocol: written as one of the first
		if again, found := pai.Load(job, pai.Options{}); len(app.JobSecrets) == 0 && len(found.Errors()) > 0 || again.Settings.PAI.Version != appdef.PAI1 {
			t.Errorf("%v in\n%s", found, job)
		}
	})
}
