package slider_test

import (
	"archive/zip"
	"bytes"
	"maps"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/slider"
)

const twoResources = `{"schema": "http://example.org/specification/v2.0.0", "components": {
	"web": {"yarn.role.priority": "1", "yarn.component.instances": "1"}, "side": {"yarn.role.priority": "2", "yarn.component.instances": "1"}}}`

// small is a package of two components, given as metainfo has them, with the sections of appConfig.
func small(web, side, appConfig string, more map[string]string) fstest.MapFS {
	files := fstest.MapFS{
		"metainfo.json": {Data: []byte(`{"schemaVersion": "2.1", "application": {"name": "small", "version": "1",
			"components": [{"name": "web", ` + web + `}, {"name": "side", ` + side + `}]}}`)},
		"appConfig.json": {Data: []byte(`{"schema": "http://example.org/specification/v2.0.0", ` + appConfig + `}`)},
		"resources.json": {Data: []byte(twoResources)},
	}
	for name, text := range more {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

func TestDocker(t *testing.T) {
	const side = `"type": "yarn_docker", "dockerContainers": [{"name": "s", "image": "busybox:1", "additionalParam": "sleep 9"}]`
	for _, test := range []struct {
		name, container, global, own string
		image, command, from         string
		commands                     []appdef.Command
	}{
		{
			name: "an image alone", container: `"image": "nginx:1"`, image: "nginx:1",
		},
		{
			name: "commands", container: `"image": "nginx:1", "startCommand": "nginx -g 'daemon off;'", "statusCommand": "true", "additionalParam": "x",
				"ports": [{"containerPort": 80, "hostPort": "80"}]`,
			image: "nginx:1", command: "nginx -g 'daemon off;'", from: "commands",
			commands: []appdef.Command{{Name: "START", Exec: "nginx -g 'daemon off;'", Type: "SHELL"}, {Name: "STATUS", Exec: "true", Type: "SHELL"}},
		},
		{
			name: "keys of muster win", container: `"image": "nginx:1", "startCommand": "nginx"`, global: `"muster.image": "oci:/img"`, own: `"muster.command": "x"`,
			image: "oci:/img", command: "x", from: "muster.command", commands: []appdef.Command{{Name: "START", Exec: "nginx", Type: "SHELL"}},
		},
		{
			name: "appConfig replaces fields", container: `"image": "nginx:1", "startCommand": "nginx"`, own: `"c.startCommand": "other", "c.statusCommand": "ls"`,
			image: "nginx:1", command: "other", from: "commands",
			commands: []appdef.Command{{Name: "START", Exec: "other", Type: "SHELL"}, {Name: "STATUS", Exec: "ls", Type: "SHELL"}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := small(`"type": "DOCKER", "dockerContainers": [{"name": "c", `+test.container+`}]`, side,
				`"global": {`+test.global+`}, "components": {"web": {`+test.own+`}}`, nil)
			a := load(t, files, slider.Options{})
			web := a.Component("web")
			if web.Limits.Image != test.image || web.Settings.Command != test.command || web.Settings.CommandFrom != test.from {
				t.Errorf("got %q runs %q from %q", web.Limits.Image, web.Settings.Command, web.Settings.CommandFrom)
			}
			if diff := cmp.Diff(web.Commands, test.commands); diff != "" {
				t.Errorf("commands: got -, want +:\n%s", diff)
			}
			if s := a.Component("side"); s.Settings.Command != "sleep 9" || len(a.Kept) > 0 {
				t.Errorf("side runs %q, kept %v", s.Settings.Command, a.Kept)
			}
		})
	}
}

func TestCredentials(t *testing.T) {
	const run = `"commands": [{"exec": "true"}]`
	a := load(t, small(run, run, `"global": {"muster.secret.OWN": "file:/own"}, "components": {"web": {"muster.secret.API_TOKEN": "file:/web"}},
		"credentials": {"file:/run/${USER}/": ["db-password", "2nd"], "env:APP_": ["api.token"], "keyring:app/": ["Key"], "jceks://hdfs/x.jceks": ["own"]}`, nil), slider.Options{})
	want := map[string]string{
		"DB_PASSWORD": "file:/run/${USER}/db-password", "_2ND": "file:/run/${USER}/2nd",
		"API_TOKEN": "env:APP_API_TOKEN", "KEY": "keyring:app/Key", "OWN": "file:/own",
	}
	if got := a.Component("side").Settings.Secrets; !maps.Equal(got, want) {
		t.Errorf("side: got %v, want %v", got, want)
	}
	want["API_TOKEN"] = "file:/web"
	if got := a.Component("web").Settings.Secrets; !maps.Equal(got, want) {
		t.Errorf("web: got %v, want %v", got, want)
	}
	if _, in := a.Config["muster.secret.KEY"]; in {
		t.Error("the configuration has what nobody wrote there")
	}
}

// env.NAME is Slider's variable of a container, at the level where it stands; muster's own key wins there.
func TestVariables(t *testing.T) {
	const run = `"commands": [{"exec": "true"}]`
	a := load(t, small(run, run, `"global": {"env.ARENAS": "4", "env.BOTH": "slider", "muster.env.BOTH": "muster", "env.OPTS": "-Dhome=${JAVA_HOME}", "env.": "x", "environment": "y"},
		"components": {"web": {"env.ARENAS": "8", "env.BOTH": "web"}}`, nil), slider.Options{Set: []string{"env.GIVEN=by hand"}})
	want := map[string]string{"ARENAS": "4", "BOTH": "muster", "OPTS": "-Dhome=${JAVA_HOME}", "GIVEN": "by hand"}
	if got := a.Component("side").Settings.Env; !maps.Equal(got, want) {
		t.Errorf("side: got %v, want %v", got, want)
	}
	want["ARENAS"], want["BOTH"] = "8", "web"
	if got := a.Component("web").Settings.Env; !maps.Equal(got, want) {
		t.Errorf("web: got %v, want %v", got, want)
	}
	if got := a.Origins["web.muster.env.ARENAS"]; got != "appConfig.json#/components/web/env.ARENAS" {
		t.Errorf("origin: %s", got)
	}
}

func TestAddons(t *testing.T) {
	const run, metainfo = `"commands": [{"exec": "true"}]`, `{"schemaVersion": "2.1", "applicationPackage": {"name": "extra", "version": "3", "components": [
		{"name": "ALL", "commandScript": {"script": "scripts/all.py"}}, {"name": "web", "commands": [{"exec": "true", "name": "INSTALL"}]}]}}`
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	for name, text := range map[string]string{"metainfo.json": metainfo, "package/scripts/all.py": "pass"} {
		f, err := z.Create(name)
		if err == nil {
			_, err = f.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	files := small(run, run, `"global": {"application.addons": "application.addon.B", "application.addon.A": "addons/a", "application.addon.B": "extra.zip",
		"application.addon.C": "/opt/c.zip", "application.resources": "a.jar, lib/b.jar"}`,
		map[string]string{"addons/a/metainfo.json": metainfo, "addons/a/package/scripts/all.py": "pass", "package/extra.zip": packed.String(), "a.jar": "a", "package/lib/b.jar": "b"})
	a, found := slider.Load(files, slider.Options{})
	if len(found.Errors()) > 0 || len(found) != 1 { // of the one that is not there
		t.Fatalf("problems: %v", found)
	}
	of := func(name, path string) appdef.Addon {
		return appdef.Addon{Name: name, Version: "3", Path: path, Components: []appdef.AddonComponent{
			{Name: "ALL", Script: &appdef.CommandScript{Script: "scripts/all.py", Type: "PYTHON", Timeout: 600}},
			{Name: "web", Commands: []appdef.Command{{Name: "INSTALL", Exec: "true", Type: "SHELL"}}},
		}}
	}
	want := []appdef.Addon{of("B", "package/extra.zip"), of("A", "addons/a"), {Name: "C", Path: "/opt/c.zip"}}
	if diff := cmp.Diff(a.Addons, want); diff != "" {
		t.Errorf("add-ons: got -, want +:\n%s", diff)
	}
	if want := []string{"a.jar", "package/lib/b.jar"}; !slices.Equal(a.AppResources, want) {
		t.Errorf("resources: got %q, want %q", a.AppResources, want)
	}
}

// An add-on's script that no component runs may be missing, as under Slider.
func TestAddonWithoutItsScript(t *testing.T) {
	for name, refused := range map[string]bool{"web": true, "ALL": true, "side": false, "elsewhere": false} {
		files := small(`"commands": [{"exec": "true"}]`, `"category": "CLIENT"`, `"global": {"application.addon.A": "a"}`,
			map[string]string{
				"a/metainfo.json": `{"schemaVersion": "2.1", "applicationPackage": {"name": "a", "components": [
					{"name": "` + name + `", "commandScript": {"script": "scripts/none.py"}}]}}`,
			})
		_, found := slider.Load(files, slider.Options{})
		at := slices.IndexFunc(found, func(p appdef.Problem) bool { return p.Got == "no file package/scripts/none.py" })
		if at < 0 || (found[at].Severity == appdef.SeverityWarning) == refused {
			t.Errorf("%s: got %v, want the missing script told, as an error: %t", name, found, refused)
		}
	}
}

// A package may be an application and an add-on at once; Slider then runs the application.
func TestAddonBesideAnApplication(t *testing.T) {
	files := small(`"commands": [{"exec": "true"}]`, `"commands": [{"exec": "true"}]`, `"global": {}`, nil)
	text := bytes.Replace(files["metainfo.json"].Data, []byte(`"application":`), []byte(`"applicationPackage": {"name": "x", "components": [{"name": "web"}]}, "application":`), 1)
	files["metainfo.json"] = &fstest.MapFile{Data: text}
	a, found := slider.Load(files, slider.Options{})
	if len(found) != 1 || len(a.Addons) != 1 || a.Addons[0].Path != "." {
		t.Errorf("got %v, %v", a.Addons, found)
	}
}
