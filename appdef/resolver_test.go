package appdef

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every placeholder that Slider knows, with its value for worker 1.
func TestResolverKnowsEveryPlaceholder(t *testing.T) {
	a := twoRoles()
	a.Components = append(a.Components, Component{Name: "TaskNode", Config: a.Config})
	a.Component("worker").Config[prefixKey] = "App-"
	r := Resolver{
		App: &a, Component: "worker", User: "ann", Cluster: "Train1", ContainerID: "c_7", Tag: 2, Host: "h2", WorkRoot: "/w", LogRoot: "/l",
		Vars:  map[string]string{"ZK_HOST": "zk:2181", "NN_URI": "hdfs://nn:8020", "NN_HOST": "nn", "DEFAULT_ZK_PATH": "/z", "DEFAULT_DATA_DIR": "/d", "MINE": "m"},
		Hosts: map[string][]string{"ps": {"h1"}, "worker": {"h1", "h2", "h3"}, "TaskNode": {}},
		Site:  map[string]string{"global.worker.port": "4002"},
	}
	for name, want := range map[string]string{
		"USER": "ann", "USER_NAME": "ann",
		"CLUSTER_NAME": "Train1", "CLUSTER": "Train1", "APP_NAME": "Train1", "CLUSTER_NAME.lc": "train1", "APP_NAME.lc": "train1",
		"COMPONENT_NAME": "worker", "COMPONENT_NAME.lc": "worker", "APP_COMPONENT_NAME": "worker", "APP_COMPONENT_NAME.lc": "worker",
		"COMPONENT_PREFIX": "App-", "COMPONENT_PREFIX.lc": "app-", "COMPONENT_ID": "2", "CONTAINER_ID": "c_7",
		"NN_URI": "hdfs://nn:8020", "NN_HOST": "nn", "ZK_HOST": "zk:2181", "DEFAULT_ZK_PATH": "/z", "DEFAULT_DATA_DIR": "/d", "JAVA_HOME": "/opt/java",
		"AGENT_WORK_ROOT": "/w", "AGENT_LOG_ROOT": "/l", "THIS_HOST": "h2",
		"PS_HOST": "h1", "ps_HOST": "h1", "WORKER_HOST": "h1,h2,h3", "worker_HOST": "h1,h2,h3", "TaskNode_HOST": "", "TASKNODE_HOST": "", "MINE": "m",
		"site.global.worker.port": "4002", "@//site/global/worker.port": "4002",
		"@//site/global/ps.port":  "0", // another component's port
		"@//site/global/data":     "/home/ann/data",
		"@//site/global/app_root": "/w/app/install", "@//site/global/app_install_dir": "/w/app/install", "@//site/global/app_log_dir": "/l",
		"@//site/global/app_pid_dir": "/w/app/run", "@//site/global/pid_file": "/w/app/run/component.pid", "@//site/global/app_conf_dir": "/w/app/conf",
		"@//site/global/app_input_conf_dir": "/w/propagatedconf", "@//site/global/app_container_id": "c_7", "@//site/global/app_container_tag": "2",
	} {
		got, unresolved := r.Expand("${" + name + "}")
		if got != want || len(unresolved) > 0 {
			t.Errorf("${%s} = %q, left %q; want %q", name, got, unresolved, want)
		}
	}
	for _, name := range []string{"NOBODY_HOST", "tasknode_HOST", "USER.lc", "HOME", "@//site/global/none", "@//site/none/x", "@//site/global/"} {
		if got, ok := r.Lookup(name); ok {
			t.Errorf("${%s} = %q, want it unknown", name, got)
		}
	}
}

func TestResolverLeavesWhatIsNotKnownYet(t *testing.T) {
	a := twoRoles()
	r := Resolver{App: &a, Component: "ps"}
	got, unresolved := r.Expand("${USER} ${ps_HOST}:${site.global.ps.port} ${COMPONENT_ID} ${@//site/global/pid_file}")
	want := "${USER} ${ps_HOST}:${ps.ALLOCATED_PORT}{PER_CONTAINER} ${COMPONENT_ID} ${AGENT_WORK_ROOT}/app/run/component.pid"
	names := []string{"AGENT_WORK_ROOT", "COMPONENT_ID", "USER", "ps.ALLOCATED_PORT", "ps_HOST"}
	if got != want || !slices.Equal(unresolved, names) {
		t.Errorf("got %q, %q\nwant %q, %q", got, unresolved, want, names)
	}
}

// Slider's prefix of a component is that of its instances' names, as a rule none; it is not the component's name.
func TestResolverPrefix(t *testing.T) {
	a := twoRoles()
	if got, left := (Resolver{App: &a, Component: "ps"}).Expand("${COMPONENT_PREFIX}a${COMPONENT_PREFIX.lc}"); got != "a" || left != nil {
		t.Errorf("got %q, left %q", got, left)
	}
}

func TestExportTemplateHasOnlyTheOwnHost(t *testing.T) {
	a := twoRoles()
	r := Resolver{App: &a, Component: "worker", Host: "h2", Hosts: map[string][]string{"worker": {"h1", "h2"}, "ps": {"h9"}}, Site: map[string]string{"global.worker.port": "4002"}, Export: true}
	export, _ := a.Export(ExportRef{"worker", "host_port"})
	if got, _ := r.Expand(export.Value + " ${ps_HOST}"); got != "h2:4002 h9" {
		t.Errorf("got %q, want h2:4002 h9", got)
	}
}

func TestClientNamesAreEmptyWhenLax(t *testing.T) {
	out, unresolved, empty := Resolver{}.ExpandLax("<${ZK_HOST}|${NN_URI}|${ZK_HOST}|${OTHER}>")
	if out != "<|||${OTHER}>" || !slices.Equal(unresolved, []string{"OTHER"}) || !slices.Equal(empty, []string{"NN_URI", "ZK_HOST"}) {
		t.Errorf("got %q, %q, %q", out, unresolved, empty)
	}
}

func TestUserValuesWinOnlyWhereSliderLetsThem(t *testing.T) {
	a := twoRoles()
	for _, c := range a.Components {
		c.Config["site.global.app_root"] = "/mine"
		c.Config["site.global.app_log_dir"] = "/mine"
	}
	r := Resolver{App: &a, Component: "ps", WorkRoot: "/w", LogRoot: "/l"}
	if got, _ := r.Expand("${@//site/global/app_root} ${@//site/global/app_log_dir}"); got != "/mine /l" {
		t.Errorf("got %q, want /mine /l", got)
	}
}

func TestDictionaries(t *testing.T) {
	a := twoRoles()
	a.Defaults = map[string]map[string]string{"extra": {"a": "1", "home": "default"}, "global": {"home": "default"}}
	r := Resolver{App: &a, Component: "worker", User: "ann", WorkRoot: "/w", LogRoot: "/l", ContainerID: "c", Tag: 1, Site: map[string]string{"global.worker.port": "4002"}}
	dicts, unresolved := r.Dictionaries()
	if len(unresolved) > 0 {
		t.Errorf("left: %v", unresolved)
	}
	for key, want := range map[string]string{"worker.port": "4002", "ps.port": "0", "data": "/home/ann/data", "home": "/home/ann", "pid_file": "/w/app/run/component.pid"} {
		if got := dicts["global"][key]; got != want {
			t.Errorf("global %s: got %q, want %q", key, got, want)
		}
	}
	if dicts["extra"]["a"] != "1" {
		t.Errorf("defaults of another dictionary: %v", dicts["extra"])
	}
	if _, unresolved := (Resolver{App: &a, Component: "ps"}).Dictionaries(); !slices.Contains(unresolved["global.data"], "USER") {
		t.Errorf("left without a user: %v", unresolved)
	}
}

func TestWhereAClientsNameComesFrom(t *testing.T) {
	for _, test := range []struct {
		name, written, environment, given, want string
	}{
		{name: "the definition", written: "/conf/jdk", want: "/conf/jdk"},
		{name: "the environment", environment: "/env/jdk", want: "/env/jdk"},
		{name: "the definition before the environment", written: "/conf/jdk", environment: "/env/jdk", want: "/conf/jdk"},
		{
			name: "the command line before both", written: "/conf/jdk", environment: "/env/jdk", given: "/set/jdk",
			want: "/set/jdk",
		},
		{
			name: "the definition leaves it to the environment", written: "${JAVA_HOME}", environment: "/env/jdk",
			want: "/env/jdk",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			app, vars := App{Config: map[string]string{}}, map[string]string{}
			if test.written != "" {
				app.Config["java_home"] = test.written
			}
			if test.environment != "" {
				vars["JAVA_HOME"] = test.environment
			}
			if test.given != "" {
				app.Vars = map[string]string{"JAVA_HOME": test.given}
				vars["JAVA_HOME"] = test.given
			}
			if got, _ := (Resolver{App: &app, Vars: vars}).Lookup("JAVA_HOME"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestADictionarysNameMayHaveDots(t *testing.T) {
	app := App{
		Config: map[string]string{
			"site.a.site.k.one": "1", "site.a.k": "2", "site.a.sites": "3",
			"site.a.two": "${site.b.site.k.two}",
		},
		Contents: Contents{ConfigFiles: []ConfigFile{
			{Type: "xml", FileName: "a.xml", Dictionary: "a"}, {Type: "xml", FileName: "s.xml", Dictionary: "a.site"},
		}},
		Defaults: map[string]map[string]string{"b.site": {"k.two": "4"}},
	}
	dicts, _ := Resolver{App: &app}.Dictionaries()
	delete(dicts, "global")
	want := map[string]map[string]string{
		"a": {"k": "2", "sites": "3", "two": "4"}, "a.site": {"k.one": "1"}, "b.site": {"k.two": "4"},
	}
	if d := cmp.Diff(want, dicts); d != "" {
		t.Errorf("dictionaries: -want +got\n%s", d)
	}
	for name, want := range map[string]string{
		"site.a.site.k.one": "1", "@//site/a.site/k.one": "1", "site.b.site.k.two": "4",
	} {
		if got, left := (Resolver{App: &app}).Expand("${" + name + "}"); got != want || left != nil {
			t.Errorf("${%s}: got %q, want %q", name, got, want)
		}
	}
	for _, p := range Validate(&app) {
		if strings.Contains(p.Got, "dictionary") || strings.Contains(p.Got, "not defined") {
			t.Errorf("got the problem %v", p)
		}
	}
}
