package hbox_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/hbox"
	"github.com/muster-agent/muster/appdef/slider"
)

// siteOf reads a file of properties, each written NAME=VALUE, with ! behind a final one.
func siteOf(t *testing.T, properties ...string) hbox.Site {
	t.Helper()
	text := "<?xml version=\"1.0\"?>\n<!-- the administrator's -->\n<configuration>\n"
	for _, p := range properties {
		name, value, _ := strings.Cut(p, "=")
		value, final := strings.CutSuffix(value, "!")
		text += fmt.Sprintf("<property><name>%s</name><value>%s</value><final>%t</final></property>\n", name, value, final)
	}
	s, err := hbox.ReadSite("hbox-site.xml", []byte(text+"</configuration>\n"), func(name string) string {
		return map[string]string{"user.name": "ann", "user.home": "/home/ann", "REGION": "lycc"}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// keyOf is a key of the app, or of one component, as a text.
func keyOf(app appdef.App, component, key string) string {
	if component == "" {
		return app.Config[key]
	}
	c := app.Component(component)
	if key == "memory" {
		return fmt.Sprint(c.Limits.MemoryMB)
	}
	return c.Config[key] + c.Resources[key]
}

func TestSite(t *testing.T) {
	for _, tt := range []struct {
		name           string
		site           []string
		line           string
		component, key string
		want, from     string
	}{
		{"a conf", []string{"hbox.app.max.attempts=3"}, "true", "", "muster.retry", "2", "hbox-site.xml:4#/hbox.app.max.attempts"},
		{"XLearning's name", []string{"xlearning.app.max.attempts=3"}, "true", "", "muster.retry", "2", "hbox-site.xml:4#/hbox.app.max.attempts"},
		{"--conf is above", []string{"hbox.app.max.attempts=3"}, "--conf hbox.app.max.attempts=5 true", "", "muster.retry", "4", "--conf#/hbox.app.max.attempts"},
		{"final holds against files alone", []string{"hbox.app.max.attempts=3!"}, "--conf hbox.app.max.attempts=5 true", "", "muster.retry", "4", ""},
		{"an option's conf", []string{"hbox.worker.memory=2g"}, "true", "worker", "memory", "2048", ""},
		{"the option is above", []string{"hbox.worker.memory=2g"}, "--worker-memory 512 true", "worker", "memory", "512", ""},
		{"the last counts", []string{"hbox.app.max.attempts=3", "hbox.app.max.attempts=4"}, "true", "", "muster.retry", "3", "hbox-site.xml:5#/hbox.app.max.attempts"},
		{"a final one stays", []string{"hbox.app.max.attempts=3!", "xlearning.app.max.attempts=4"}, "true", "", "muster.retry", "2", "hbox-site.xml:4#/hbox.app.max.attempts"},
		{"a variable of the user's", []string{"hbox.container.env.WHO=${user.name} in ${env.REGION}${env.NONE:-!}"}, "true", "", "muster.env.WHO", "ann in lycc!", ""},
		{"another property", []string{"hbox.tf.x=/top", "hbox.container.env.D=${hbox.tf.x}/d"}, "true", "", "muster.env.D", "/top/d", ""},
		{"an unknown variable stays", []string{"hbox.container.env.D=${x}/d"}, "true", "", "muster.env.D", "${x}/d", ""},
		{"muster's own key", []string{"muster.stop.grace=5s"}, "true", "", "muster.stop.grace", "5s", "hbox-site.xml:4#/muster.stop.grace"},
		{"muster's own key of a role", []string{"worker:muster.stop.grace=5s"}, "true", "worker", "muster.stop.grace", "5s", ""},
		{"a role that the job lacks", []string{"ps:muster.stop.grace=5s"}, "true", "worker", "muster.stop.grace", "", ""},
		{"the job's is above", []string{"muster.framework=pytorch"}, "true", "", "muster.framework", "none", ""},
		{"the rate", []string{"hbox.container.maxFailures.rate=0.2"}, "true", "", "muster.complete.total.minFailed", "20%", "hbox-site.xml:4#/hbox.container.maxFailures.rate"},
		{"no rate for those that need each other", []string{"hbox.container.maxFailures.rate=0.5"}, "--app-type horovod true", "", "muster.complete.total.minFailed", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, found := hbox.Parse(strings.Fields(tt.line), siteOf(t, tt.site...))
			if bad := found.Errors(); len(bad) > 0 {
				t.Fatal(bad)
			}
			if got := keyOf(s.App, tt.component, tt.key); got != tt.want {
				t.Errorf("%s: got %q, want %q", tt.key, got, tt.want)
			}
			if from := s.App.Origins[tt.key] + s.App.Origins["worker."+tt.key]; tt.from != "" && from != tt.from {
				t.Errorf("from %s, want %s", from, tt.from)
			}
		})
	}
}

// TestSiteNotes holds what is told of a site: its unknown names once, its errors with their line, and nothing of
// defaults that do not fit a job.
func TestSiteNotes(t *testing.T) {
	for _, tt := range []struct {
		site []string
		line string
		want string
	}{
		{[]string{"hbox.history.client.thread-count=10", "yarn.acl.enable=true", "hbox.staging.dir=/tmp"}, "true", ""},
		{[]string{"hbox.app.max.atempts=2"}, "true", "hbox-site.xml#: got the unknown hbox.app.max.atempts, want names of HBox's confs; did you mean hbox.app.max.attempts?"},
		{[]string{"a=2", "b=3"}, "true", "hbox-site.xml#: got the unknown a, b, want names of HBox's confs; they are ignored"},
		{[]string{"hbox.app.max.attempts=x"}, "true", `hbox-site.xml:4#/hbox.app.max.attempts: got "x", want a whole number, 1 or more`},
		{[]string{"hbox.app.max.attempts=x"}, "--conf hbox.app.max.attempts=2 true", ""},
		{[]string{"muster.stop.grace=soon"}, "true", `hbox-site.xml:4#/muster.stop.grace: got "soon"`},
		{[]string{"muster.hbox.type=MXNET"}, "true", `hbox-site.xml:4#/muster.hbox.type: got "MXNET", want --app-type TYPE`},
		{[]string{"hbox.chief.worker.memory=1g", "hbox.tf.evaluator=true", "hbox.ps.num=1"}, "true", ""},
	} {
		_, found := hbox.Parse(strings.Fields(tt.line), siteOf(t, tt.site...))
		if got := strings.Trim(fmt.Sprint(found), "[]"); !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%v %s: got %q, want %q", tt.site, tt.line, got, tt.want)
		}
	}
}

// TestClientOptions holds what options of HBox's client become that no process has.
func TestClientOptions(t *testing.T) {
	for _, tt := range []struct {
		line    string
		jars    string
		carried string
	}{
		{"true", "", "map[] []"},
		{"--user-classpath-first true --host-local-enable false true", "", "map[] []"},
		{"--user-classpath-first false true", "last", "map[] []"},
		{"--conf hbox.user.classpath.first=false true", "last", "map[] []"},
		{"--host-local-enable true true", "", "map[host-local-enable:true] []"},
	} {
		s, found := hbox.Parse(strings.Fields(tt.line), hbox.Site{})
		if got := fmt.Sprint(s.Carried, s.CarriedNames()); len(found) > 0 || got != tt.carried {
			t.Errorf("%s: carried %s, want %s (%v)", tt.line, got, tt.carried, found)
		}
		if got := s.App.Config["muster.hbox.jars"]; got != tt.jars {
			t.Errorf("%s: jars %q, want %q", tt.line, got, tt.jars)
		}
	}
}

// TestSiteInPackage holds that the package of a job still names the administrator's file.
func TestSiteInPackage(t *testing.T) {
	site := siteOf(t, "hbox.app.max.attempts=3", "hbox.worker.memory=2g", "hbox.worker.cores=2", "muster.stop.grace=5s")
	s, _ := hbox.Parse(strings.Fields("--worker-cores 1 --conf muster.stop.grace=9s true"), site)
	documents, _ := slider.Write(s.App)
	files := fstest.MapFS{}
	for name, text := range documents {
		files[name] = &fstest.MapFile{Data: text}
	}
	app, found := slider.Load(files, slider.Options{})
	if len(found) > 0 {
		t.Fatal(found)
	}
	for key, want := range map[string]string{
		"muster.retry":             "hbox-site.xml:4#/hbox.app.max.attempts",
		"worker.yarn.memory":       "hbox-site.xml:5#/hbox.worker.memory",
		"worker.yarn.vcores":       "resources.json#/components/worker/yarn.vcores",
		"worker.muster.stop.grace": "appConfig.json#/global/muster.stop.grace",
	} {
		if got := app.Origins[key]; got != want {
			t.Errorf("%s: from %q, want %q", key, got, want)
		}
	}
}

// TestSiteCarried holds that the administrator's queue reaches a launcher, and is no note on this host.
func TestSiteCarried(t *testing.T) {
	site := siteOf(t, "hbox.app.queue=root.ml", "hbox.app.priority=HIGH", "hbox.host.blacklist=h1")
	s, _ := hbox.Parse(strings.Fields("--priority LOW true"), site)
	if got := fmt.Sprint(s.Carried, s.CarriedNames()); got != "map[hbox.app.queue:root.ml priority:LOW] [--priority]" {
		t.Error(got)
	}
}

func TestBrokenSite(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "hbox-site.xml:1: got no element, want <configuration>",
		"<configuration>\n<property>\n":        "hbox-site.xml:3: got XML that ends in an error, unexpected EOF",
		"<configuration>\n<a></b>":             "hbox-site.xml:2: got XML that ends in an error, element <a> closed by </b>",
		"<site/>":                              "hbox-site.xml:1: got <site>, want <configuration>",
		"<configuration>\n<include href='x'/>": "hbox-site.xml:2: got an include, want the properties themselves",
		"<configuration>\n\n<property><value>1</value></property></configuration>": "hbox-site.xml:3: got a property without a name",
	} {
		_, err := hbox.ReadSite("hbox-site.xml", []byte(text), func(string) string { return "" })
		if err == nil || !strings.HasPrefix(strings.TrimSpace(err.Error()), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}
