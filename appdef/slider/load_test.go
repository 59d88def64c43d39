package slider_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/slider"
)

// base is the package of testdata/base with files over it; a nil file is left out.
func base(t testing.TB, over map[string]string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	for _, name := range []string{"metainfo.json", "appConfig.json", "resources.json"} {
		data, err := os.ReadFile("testdata/base/" + name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: data}
	}
	for name, data := range over {
		files[name] = &fstest.MapFile{Data: []byte(data)}
	}
	return files
}

func load(t testing.TB, fsys fs.FS, options slider.Options) appdef.App {
	t.Helper()
	a, found := slider.Load(fsys, options)
	if len(found) > 0 {
		t.Fatalf("problems:\n%v", found)
	}
	return a
}

// Both spellings of the TensorFlow package, and the catalog, load without a word.
func TestPackagesOfTheRepository(t *testing.T) {
	for dir, want := range map[string]string{
		"tests/packages/tensorflow-seed":      "ps 2 ps 2056, worker 5 worker 2056, tensorboard 1 service 1024",
		"tests/packages/tensorflow-published": "ps 2 ps 2048, chiefworker 1 chief 4096, worker 5 worker 2048, tensorboard 1 service 4096",
		"packages/catalog/tensorflow":         "",
		"packages/catalog/handwriting":        "",
	} {
		t.Run(dir, func(t *testing.T) {
			a := load(t, os.DirFS("../../"+dir), slider.Options{})
			var got []string
			for _, c := range a.Components {
				got = append(got, strings.Join([]string{c.Name, strconv.Itoa(c.Instances), string(c.Settings.Role), strconv.Itoa(c.Limits.MemoryMB)}, " "))
			}
			if text := strings.Join(got, ", "); want != "" && text != want {
				t.Errorf("got %s\nwant %s", text, want)
			}
			if a.Settings.Framework != "tensorflow" || len(a.Component("worker").Settings.ClusterExport.Group) == 0 {
				t.Errorf("framework %s, export %v", a.Settings.Framework, a.Component("worker").Settings.ClusterExport)
			}
		})
	}
}

func TestSeedInDetail(t *testing.T) {
	a := load(t, os.DirFS("../../tests/packages/tensorflow-seed"), slider.Options{Template: file(t, "../../tests/packages/tensorflow-seed/appConfig-default.json")})
	ps := a.Component("ps")
	if ps.Settings.CommandFrom != "builtin" || ps.Settings.Start != "builtin" || !ps.CommandScript.Missing || ps.CommandScript.Script != "scripts/tensorflow.py" || ps.CommandScript.Timeout != 600 {
		t.Errorf("command: %s %+v", ps.Settings.CommandFrom, ps.CommandScript)
	}
	if want := (appdef.ExportRef{Group: "ps", Name: "host_port"}); ps.Settings.ClusterExport != want {
		t.Errorf("cluster export: %v", ps.Settings.ClusterExport)
	}
	if board := a.Component("tensorboard").Settings; board.ClusterExport != (appdef.ExportRef{}) || board.Restart.Scope != appdef.ScopeInstance || board.Restart.Budget != -1 {
		t.Errorf("tensorboard: %+v", board)
	}
	if ps.Settings.Restart.Scope != appdef.ScopeInstance || ps.Settings.Restart.Budget != 5 {
		t.Errorf("restart: %+v", ps.Settings.Restart)
	}
	if got := a.PortNeeds("tensorboard"); len(got) != 1 || got[0].Key != "global.tensor.board.port" {
		t.Errorf("ports of tensorboard: %v", got)
	}
	if want := []appdef.Package{{Type: "folder", Name: "files"}}; !slices.Equal(a.Packages, want) {
		t.Errorf("packages: %v", a.Packages)
	}
}

func file(t *testing.T, path string) *slider.File {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return &slider.File{Name: path, Data: data}
}

// Slider's thresholds: 0 is no limit, and a key of muster wins over them.
func TestFailureThresholds(t *testing.T) {
	files := base(t, nil)
	for _, test := range []struct {
		name, global, ps, worker string
		budgets                  [2]int
		window                   appdef.Seconds
	}{
		{name: "none", budgets: [2]int{5, 3}, window: 300},
		{name: "component", ps: `"yarn.container.failure.threshold": "7"`, worker: `"yarn.container.failure.threshold": "7"`, budgets: [2]int{7, 3}, window: 300},
		{name: "global", global: `"yarn.container.failure.threshold": 8`, budgets: [2]int{8, 3}, window: 300},
		{name: "component over global", global: `"yarn.container.failure.threshold": 8`, ps: `"yarn.container.failure.threshold": "0"`, budgets: [2]int{-1, 3}, window: 300},
		{name: "negative", ps: `"yarn.container.failure.threshold": "-3"`, budgets: [2]int{-1, 3}, window: 300},
		{name: "window", global: `"yarn.container.failure.window.days": "1", "yarn.container.failure.window.minutes": 5`, budgets: [2]int{5, 3}, window: 86700},
		{
			name: "window of minutes and seconds", budgets: [2]int{5, 3}, window: 90030,
			global: `"yarn.container.failure.window.minutes": "1500", "yarn.container.failure.window.seconds": "30"`,
		},
		{
			name: "window of seconds", global: `"yarn.container.failure.window.seconds": "21600"`,
			budgets: [2]int{5, 3}, window: 21600,
		},
		{name: "muster in resources", global: `"yarn.container.failure.threshold": 8, "muster.restart.budget": 2`, budgets: [2]int{2, 3}, window: 300},
	} {
		t.Run(test.name, func(t *testing.T) {
			section := func(more string) string {
				if more != "" {
					return ", " + more
				}
				return ""
			}
			files["resources.json"] = &fstest.MapFile{Data: []byte(`{"schema": "http://example.org/specification/v2.0.0", "global": {` + test.global + `}, "components": {
				"ps": {"yarn.role.priority": "1", "yarn.component.instances": "1"` + section(test.ps) + `},
				"worker": {"yarn.role.priority": "2", "yarn.component.instances": "1"` + section(test.worker) + `}}}`)}
			a := load(t, files, slider.Options{})
			for i, want := range test.budgets {
				if got := a.Components[i].Settings.Restart; got.Budget != want || got.Window != test.window {
					t.Errorf("%s: got %+v, want budget %d, window %v", a.Components[i].Name, got, want, test.window)
				}
			}
		})
	}
}

// The same app as XML is the same app.
func TestXMLMetainfo(t *testing.T) {
	const values = `<configuration><property><name>a</name><value>1</value></property></configuration>`
	beside := map[string]string{"package/files/a.tar": "x", "configuration/c-site.xml": values, "configuration/x-env.xml": values}
	files := base(t, beside)
	files["metainfo.json"] = &fstest.MapFile{Data: []byte(fullJSON)}
	asJSON := load(t, files, slider.Options{})
	files = base(t, beside)
	files["metainfo.xml"] = &fstest.MapFile{Data: []byte(fullXML)}
	delete(files, "metainfo.json")
	asXML := load(t, files, slider.Options{})
	if diff := cmp.Diff(asXML, asJSON, cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Provenance.Places" }, cmp.Ignore())); diff != "" {
		t.Errorf("XML -, JSON +:\n%s", diff)
	}
	if appdef.Digest(asXML) != appdef.Digest(asJSON) {
		t.Error("the digests differ")
	}
	worker := asXML.Component("worker")
	if !worker.AutoStart || worker.MinInstances != 1 || worker.MaxInstances != 9 || worker.CommandScript.Timeout != 30 || len(worker.ConfigFiles) != 1 {
		t.Errorf("worker: %+v", worker)
	}
	if want := []appdef.CommandOrder{{Component: "worker", Command: "START", Requires: []appdef.Requirement{{Component: "ps", State: "STARTED"}, {Component: "ps", State: "INSTALLED"}}}}; !cmp.Equal(asXML.CommandOrders, want) {
		t.Errorf("orders: %+v", asXML.CommandOrders)
	}
	if want := []appdef.Package{{Type: "tarball", Name: "files/a.tar"}}; !slices.Equal(asXML.Packages, want) {
		t.Errorf("packages: %v", asXML.Packages)
	}
}

const fullJSON = `{
  "schemaVersion": "2.0",
  "application": {
    "name": "train", "comment": "learns", "version": 1.0, "exportedConfigs": "a, b",
    "exportGroups": [
      {"name": "ps", "exports": [{"name": "host_port", "value": "${ps_HOST}:${site.global.ps.port}"}]},
      {"name": "worker", "exports": [{"name": "host_port", "value": "${worker_HOST}:${site.global.worker.port}"}]}
    ],
    "commandOrders": [{"command": "worker-START", "requires": "ps-STARTED,ps-INSTALLED"}],
    "components": [
      {"name": "ps", "category": "MASTER", "compExports": "ps-host_port", "publishConfig": true, "commandScript": {"script": "scripts/a.py"}},
      {"name": "worker", "category": "SLAVE", "compExports": " worker-host_port ", "appExports": "ps-host_port", "autoStartOnFailure": "true", "minInstanceCount": 1, "maxInstanceCount": "9",
       "componentExports": [{"name": "log", "value": "${THIS_HOST}"}],
       "commandScript": {"script": "scripts/a.py", "scriptType": "PYTHON", "timeout": 30},
       "configFiles": [{"type": "env", "fileName": "x.sh", "dictionaryName": "x-env"}]}
    ],
    "osSpecifics": [{"osType": "any", "packages": [{"type": "tarball", "name": "files/a.tar"}]}],
    "configFiles": [{"type": "xml", "fileName": "c.xml", "dictionaryName": "c-site"}]
  }
}`

const fullXML = `<?xml version="1.0" encoding="ISO-8859-1"?>
<!-- a comment -->
<metainfo>
  <schemaVersion>2.0</schemaVersion>
  <application>
    <name>train</name><comment>learns</comment><version>1.0</version>
    <exportedConfigs>a, b</exportedConfigs>
    <exportGroups>
      <exportGroup><name>ps</name><exports><export><name>host_port</name><value>${ps_HOST}:${site.global.ps.port}</value></export></exports></exportGroup>
      <exportGroup><name>worker</name><export><name>host_port</name><value>
         ${worker_HOST}:${site.global.worker.port}
      </value></export></exportGroup>
    </exportGroups>
    <commandOrders><commandOrder><command>worker-START</command><requires>ps-STARTED,ps-INSTALLED</requires></commandOrder></commandOrders>
    <components>
      <component><name>ps</name><category>MASTER</category><compExports>ps-host_port</compExports><publishConfig>true</publishConfig>
        <commandScript><script>scripts/a.py</script></commandScript></component>
      <component><name>worker</name><category>SLAVE</category><compExports>worker-host_port</compExports><appExports>ps-host_port</appExports>
        <autoStartOnFailure>true</autoStartOnFailure><minInstanceCount>1</minInstanceCount><maxInstanceCount>9</maxInstanceCount>
        <componentExports><componentExport><name>log</name><value>${THIS_HOST}</value></componentExport></componentExports>
        <commandScript><script>scripts/a.py</script><scriptType>PYTHON</scriptType><timeout>30</timeout></commandScript>
        <configFiles><configFile><type>env</type><fileName>x.sh</fileName><dictionaryName>x-env</dictionaryName></configFile></configFiles>
      </component>
    </components>
    <osSpecifics><osSpecific><osType>any</osType><packages><package><type>tarball</type><name>files/a.tar</name></package></packages></osSpecific></osSpecifics>
    <configFiles><configFile><type>xml</type><fileName>c.xml</fileName><dictionaryName>c-site</dictionaryName></configFile></configFiles>
  </application>
</metainfo>`

// Law: spelling does not matter. Comments, trailing commas, the order of keys, numbers for texts
// and a byte order mark change neither the App's digest nor what is said of it.
func TestSpellingDoesNotMatter(t *testing.T) {
	want := appdef.Digest(load(t, base(t, nil), slider.Options{}))
	got := appdef.Digest(load(t, base(t, map[string]string{
		"resources.json": "\xef\xbb\xbf" + `// what each may use
{
  "components": { /* two of them */
    "worker": {"yarn.memory": 256, "yarn.component.instances": 3, "yarn.role.priority": 2,},
    "ps": {"yarn.component.instances": 1, "yarn.role.priority": 1, "yarn.memory": 256},
  },
  "schema": "http://example.org/specification/v2.0.0",
} // end`,
	}), slider.Options{}))
	if got != want {
		t.Errorf("digest: got %s, want %s", got, want)
	}
}

func TestDigestDoesNotSeeCounts(t *testing.T) {
	files := base(t, nil)
	want := appdef.Digest(load(t, files, slider.Options{}))
	for _, o := range []slider.Options{
		{Instances: []string{"ps=2,worker=7"}}, {Instances: []string{"ps=0"}}, {Set: []string{"worker:yarn.component.instances=9", "ZK_HOST=zk:2181"}},
	} {
		if got := appdef.Digest(load(t, files, o)); got != want {
			t.Errorf("%+v changes the digest", o)
		}
	}
	if got := appdef.Digest(load(t, files, slider.Options{Set: []string{"muster.stop.grace=1"}})); got == want {
		t.Error("a setting does not change the digest")
	}
}

// Whose end is the job's in an app that one instance runs: it may be of another component after a flex.
func TestDigestDoesNotSeeWhoLeads(t *testing.T) {
	for name, global := range map[string]string{
		"mpi": `"muster.framework": "mpi"`, "in-graph": `"muster.framework": "tensorflow", "muster.tensorflow.mode": "in-graph"`,
	} {
		t.Run(name, func(t *testing.T) {
			files := base(t, map[string]string{"appConfig.json": `{"schema": "http://example.org/specification/v2.0.0", "global": {
				"site.global.ps.port": "1", "site.global.worker.port": "2", "muster.command": "true", ` + global + `},
				"components": {"ps": {"muster.role": "chief"}}}`})
			for _, counts := range []string{"ps=0,worker=3", "ps=1,worker=3", "ps=1,worker=0"} {
				a := load(t, files, slider.Options{Instances: []string{counts}})
				if got, want := appdef.Digest(a), appdef.Digest(load(t, files, slider.Options{})); got != want {
					t.Errorf("%s changes the digest", counts)
				}
				for _, c := range a.Components {
					if n := c.Settings.Complete.MinSucceeded; n == nil || *n != 1 {
						t.Errorf("%s: %s: min succeeded %v, want 1", counts, c.Name, n)
					}
				}
			}
		})
	}
}

func TestFirstFileWinsAndNothingIsMerged(t *testing.T) {
	conf := func(grace string) string {
		return `{"schema": "http://example.org/specification/v2.0.0", "global": {"muster.stop.grace": "` + grace + `",
			"site.global.ps.port": "1", "site.global.worker.port": "2"}}`
	}
	files := base(t, map[string]string{"appConfig.json": conf("1"), "appConfig.default.json": conf("2"), "appConfig-default.json": conf("3")})
	for want, name := range []string{"", "appConfig.json", "appConfig.default.json"} {
		delete(files, name)
		a := load(t, files, slider.Options{})
		if got := a.Components[0].Settings.Stop.Grace; got != appdef.Seconds(want+1) {
			t.Errorf("without %q: grace %v, want %d", name, got, want+1)
		}
	}
	a := load(t, files, slider.Options{Template: &slider.File{Name: "mine.json", Data: []byte(conf("4"))}})
	if got := a.Components[0].Settings.Stop.Grace; got != 4 || a.Origins["ps.muster.stop.grace"] != "mine.json#/global/muster.stop.grace" {
		t.Errorf("template: grace %v from %s", got, a.Origins["ps.muster.stop.grace"])
	}
	delete(files, "appConfig-default.json")
	if _, found := slider.Load(files, slider.Options{}); strings.Contains(found.Error(), "no such file") {
		t.Errorf("an app without appConfig: %v", found)
	}
}

func TestCommandLine(t *testing.T) {
	files := base(t, nil)
	a := load(t, files, slider.Options{
		Set: []string{
			"ZK_HOST=zk:2181", "MODEL=a=b", "worker:muster.restart.budget=9", "muster.stop.grace=5", "global:muster.stop.grace=6",
			"worker:yarn.memory=512", "yarn.vcores=2", "site.global.url=http://x/?a=b:c", "ps:yarn.component.instances=8",
		},
		Instances: []string{"worker=4,ps=2", "worker=0"},
	})
	if want := map[string]string{"ZK_HOST": "zk:2181", "MODEL": "a=b"}; !maps.Equal(a.Vars, want) {
		t.Errorf("vars: %v", a.Vars)
	}
	ps, worker := a.Component("ps"), a.Component("worker")
	if worker.Settings.Restart.Budget != 9 || ps.Settings.Restart.Budget != 5 || ps.Settings.Stop.Grace != 6 {
		t.Errorf("settings: %+v and %+v", ps.Settings, worker.Settings)
	}
	if worker.Limits.MemoryMB != 512 || ps.Limits.MemoryMB != 256 || ps.Limits.VCores != 2 {
		t.Errorf("limits: %+v and %+v", ps.Limits, worker.Limits)
	}
	if a.Config["site.global.url"] != "http://x/?a=b:c" || ps.Config["site.global.url"] != "http://x/?a=b:c" {
		t.Errorf("config: %q", a.Config["site.global.url"])
	}
	if want := map[string]int{"ps": 2, "worker": 0}; !maps.Equal(a.Counts(), want) {
		t.Errorf("counts: %v", a.Counts())
	}
	if a.Origins["worker.muster.restart.budget"] != "--set#/worker/muster.restart.budget" {
		t.Errorf("origin: %s", a.Origins["worker.muster.restart.budget"])
	}
}

// A value of the command line replaces what both files say at its level.
func TestSetReplacesBothFiles(t *testing.T) {
	files := base(t, map[string]string{
		"resources.json": `{"schema": "http://example.org/specification/v2.0.0", "components": {
			"ps": {"yarn.role.priority": 1, "yarn.component.instances": 1, "muster.shm": 1, "yarn.io/gpu": 1}, "worker": {"yarn.role.priority": 2, "yarn.component.instances": 1}}}`,
	})
	a := load(t, files, slider.Options{Set: []string{"ps:muster.shm=2", "ps:yarn.io/gpu=3"}})
	if l := a.Component("ps").Limits; l.ShmMB != 2 || l.GPUs != 3 {
		t.Errorf("limits: %+v", l)
	}
}

func TestDefaultsOfThePackage(t *testing.T) {
	a := load(t, base(t, map[string]string{
		"package/configuration/global.xml": `<configuration><property><name>data</name><value>/default</value></property>
			<property><name>color</name><value>red</value></property><property><name>empty</name><value></value></property></configuration>`,
	}), slider.Options{Set: []string{"site.global.x=${@//site/global/color} ${@//site/global/data}"}})
	if got := a.Defaults["global"]; !maps.Equal(got, map[string]string{"data": "/default", "color": "red"}) {
		t.Errorf("defaults: %v", got)
	}
	if got, _ := (appdef.Resolver{App: &a, Component: "ps", User: "ann"}).Expand("${@//site/global/x}"); got != "red /data/ann" {
		t.Errorf("got %q, want red /data/ann", got)
	}
}

func TestWhatIsNotActedUponIsKept(t *testing.T) {
	meta := strings.Replace(fullJSON, `"category": "MASTER"`, `"category": "MASTER", "dockerContainers": [{"name": "d", "ports": [{"containerPort": 80}]}]`, 1)
	files := base(t, map[string]string{
		"metainfo.json": meta, "package/files/a.tar": "x",
		"appConfig.json": `{"schema": "http://example.org/specification/v2.0.0", "metadata": {"a": 1}, "credentials": {"jceks://x": ["alias"]},
			"global": {"site.global.ps.port": "1", "site.global.worker.port": "2", "site.c-site.a": "1", "site.x-env.a": "1", "wait.heartbeat": 3}, "components": {"slider-appmaster": {"jvm.heapsize": "256M"}}}`,
	})
	a, found := slider.Load(files, slider.Options{})
	if len(found.Errors()) > 0 || len(a.Warnings) != 2 {
		t.Fatalf("problems: %v", found)
	}
	var kept []string
	for pointer := range a.Kept {
		kept = append(kept, pointer)
	}
	slices.Sort(kept)
	want := []string{"appConfig#/components/slider-appmaster", "appConfig#/credentials/jceks:~1~1x", "appConfig#/metadata", "metainfo#/application/components/0/dockerContainers"}
	if !slices.Equal(kept, want) {
		t.Errorf("kept %q, want %q", kept, want)
	}
	if a.Config["wait.heartbeat"] != "3" {
		t.Errorf("config: %v", a.Config)
	}
	def, err := appdef.Encode(a)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := appdef.Decode(def); err != nil || appdef.Digest(back) != appdef.Digest(a) {
		t.Errorf("the digest changes on the way through the registry: %v", err)
	}
}

func TestPackageInAZip(t *testing.T) {
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	if err := z.AddFS(base(t, nil)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(packed.Bytes()), int64(packed.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := load(t, r, slider.Options{}), load(t, base(t, nil), slider.Options{}); appdef.Digest(a) != appdef.Digest(b) {
		t.Error("a zip and a folder of the same files differ")
	}
}

func TestMaxIsAsMuchAsThereIs(t *testing.T) {
	a := load(t, base(t, nil), slider.Options{Set: []string{"ps:yarn.memory=max", "ps:yarn.vcores=MAX"}})
	if l := a.Component("ps").Limits; l.MemoryMB != appdef.Max || l.VCores != appdef.Max {
		t.Errorf("limits: %+v", l)
	}
}

func TestCommands(t *testing.T) {
	meta := `{"schemaVersion": "2.1", "application": {"name": "LISTENER",
		"exportGroups": [{"name": "Servers", "exports": [{"name": "host_port", "value": "${LISTEN_HOST}:${site.global.port}"}]}],
		"components": [{"name": "LISTEN", "compExports": "Servers-host_port", "commands": [{"exec": "nc -l {$conf:@//site/global/port}"}, {"name": "STOP", "exec": "true"}]}]}}`
	a := load(t, fstest.MapFS{
		"metainfo.json":  {Data: []byte(meta)},
		"appConfig.json": {Data: []byte(`{"schema": "http://example.org/specification/v2.0.0", "global": {"site.global.port": "${LISTEN.ALLOCATED_PORT}{PER_CONTAINER}"}}`)},
		"resources.json": {Data: []byte(`{"schema": "http://example.org/specification/v2.0.0", "components": {"LISTEN": {"yarn.role.priority": 1, "yarn.component.instances": 1}}}`)},
	}, slider.Options{})
	c := a.Component("LISTEN")
	if c.Settings.CommandFrom != "commands" || c.Settings.Command != "nc -l {$conf:@//site/global/port}" || a.Settings.Framework != "none" {
		t.Errorf("settings: %+v, framework %s", c.Settings, a.Settings.Framework)
	}
	r := appdef.Resolver{App: &a, Component: "LISTEN", Site: map[string]string{"global.port": "4001"}}
	if got, _ := r.Expand(c.Settings.Command); got != "nc -l 4001" {
		t.Errorf("got %q, want nc -l 4001", got)
	}
	a = load(t, base(t, nil), slider.Options{Set: []string{"ps:muster.command=exec serve"}})
	if c := a.Component("ps"); c.Settings.CommandFrom != "muster.command" || c.Settings.Command != "exec serve" {
		t.Errorf("settings: %+v", c.Settings)
	}
}

// A pipe in a definition's place is told of and not waited for.
func TestPipesAreNotRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, base(t, nil)); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, "resources.json")
	if err := errors.Join(os.Remove(pipe), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	_, found := slider.Load(os.DirFS(dir), slider.Options{})
	if len(found) == 0 || !strings.Contains(found.Error(), "resources.json#: got no plain file") {
		t.Errorf("got %v", found)
	}
}
