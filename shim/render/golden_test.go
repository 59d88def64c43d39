package render_test

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/hbox"
	"github.com/muster-agent/muster/appdef/pai"
	"github.com/muster-agent/muster/appdef/slider"
	"github.com/muster-agent/muster/packages/catalog"
	"github.com/muster-agent/muster/shim/launcher/known"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// apps are one of each dialect, and one that asks for all that there is.
func apps(t *testing.T) map[string]appdef.App {
	t.Helper()
	all := map[string]appdef.App{}
	take := func(name string, app appdef.App, problems appdef.Problems) {
		t.Helper()
		if bad := problems.Errors(); len(bad) > 0 {
			t.Fatal(bad)
		}
		all[name] = app
	}
	files, err := catalog.Open("tensorflow")
	if err != nil {
		t.Fatal(err)
	}
	app, problems := slider.Load(files, slider.Options{})
	take("tensorflow", app, problems)
	app, problems = slider.Load(osDir("everything"), slider.Options{})
	take("everything", app, problems)
	job, err := os.ReadFile("testdata/job.json")
	if err != nil {
		t.Fatal(err)
	}
	app, problems = pai.Load(job, pai.Options{})
	take("pai", app, problems)
	submission, problems := hbox.Parse(strings.Fields("--app-type tensorflow --app-name h --ps-num 1 --worker-num 2 --worker-memory 3G --worker-cores 2 --worker-gpus 1 --queue q --priority HIGH python train.py"), hbox.Site{})
	take("hbox", submission.App, problems)
	return all
}

func TestGolden(t *testing.T) {
	for name, app := range apps(t) {
		for _, launcher := range known.Names() {
			for _, format := range known.Formats(launcher) {
				t.Run(name+"/"+launcher+"/"+format, func(t *testing.T) {
					o := options()
					o.Format, o.AppID = format, name
					if launcher != "k8s" {
						o.Image = ""
					}
					if name == "everything" {
						o.AppFlags, o.AgentFlags = []string{"--set", "worker:site.global.x=it's ${HOME} 100% $(id)"}, []string{"--env", "A=b c"}
						o.TokenFile, o.TokenSecret, o.Queue, o.Priority, o.TimeLimit = "/etc/muster/token", "consul", "train", "HIGH", 90*time.Minute
						o.Privileged, o.Image = true, ""
						o.Binary += "#sha256=" + strings.Repeat("0a", 32)
					}
					job, err := known.Render(launcher, app, o)
					if err != nil {
						t.Fatal(err)
					}
					var b strings.Builder
					for _, file := range job.Files {
						b.WriteString("-- " + file.Name + " --\n" + file.Text)
					}
					golden(t, filepath.Join("testdata", name+"."+launcher+"."+format+".golden"), b.String())
				})
			}
		}
	}
}

// osDir is a package of testdata.
func osDir(name string) fs.FS { return os.DirFS(filepath.Join("testdata", name)) }

func golden(t *testing.T, file, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(have), text); d != "" {
		t.Errorf("%s (make golden): -have +want\n%s", file, d)
	}
}
