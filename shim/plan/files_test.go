package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/appdef"
)

// Files and archives are stage items behind the package's own, in a plain order, each under its own name.
func TestFiles(t *testing.T) {
	app := with(trainingApp(), "worker", func(c *appdef.Component) {
		c.Settings.Files = map[string]string{"words": "lib/words", "run.sh": "https://h/run.sh"}
		c.Settings.Archives = map[string]string{"model": "hdfs://nn/m.tgz"}
		c.Settings.FilesUnchecked = true
	})
	p := mustBuild(t, app, withStore(request("worker", 1)))
	want := []StageItem{
		{Name: "run.sh", Kind: StageCopy, From: "https://h/run.sh", To: "${WORK}/worker-1/run.sh", Unchecked: true},
		{Name: "words", Kind: StageCopy, From: "file:${WORK}/store/lib/words", To: "${WORK}/worker-1/words", Unchecked: true},
		{Name: "model", Kind: StageUnpacked, From: "hdfs://nn/m.tgz", To: "${WORK}/worker-1/model", Unchecked: true},
	}
	if diff := cmp.Diff(want, p.Stage[len(p.Stage)-len(want):]); diff != "" {
		t.Error(diff)
	}
	if p.DefaultFS != DefaultStore || p.Process.Cwd != "${WORK}/worker-1" {
		t.Errorf("default filesystem %q, starts in %s", p.DefaultFS, p.Process.Cwd)
	}
	for _, item := range mustBuild(t, app, withStore(request("ps", 0))).Stage {
		if item.Kind == StageCopy || item.Kind == StageUnpacked {
			t.Errorf("the parameter server gets %+v", item)
		}
	}
}

// What would lie over something else of the instance's is a problem that names both.
func TestFilesApart(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*appdef.App, *appdef.ComponentSettings)
		want   string
	}{
		{"file and archive", func(_ *appdef.App, s *appdef.ComponentSettings) {
			s.Files, s.Archives = map[string]string{"x": "/a"}, map[string]string{"x": "/b.zip"}
		}, `"x", the name of muster.file.x as well`},
		{"file and input", func(_ *appdef.App, s *appdef.ComponentSettings) {
			s.Files, s.Inputs.From = map[string]string{"x": "/a"}, map[string]string{"x": "/b"}
		}, `"x", the name of muster.input.x as well`},
		{"archive and output", func(_ *appdef.App, s *appdef.ComponentSettings) {
			s.Archives, s.Outputs.To = map[string]string{"x": "/a.zip"}, map[string]string{"x": "/b"}
		}, `"x", the name of muster.output.x as well`},
		{"file and one of a submission's own", func(app *appdef.App, s *appdef.ComponentSettings) {
			app.Settings.HBox.Type = "CAFFE"
			app.Packages = []appdef.Package{{Type: "folder", Name: "files/x"}}
			s.Files = map[string]string{"x": "/a"}
		}, `"x", the name of a folder of the package as well`},
		{"nothing", func(_ *appdef.App, s *appdef.ComponentSettings) {
			s.Files, s.Inputs.From, s.Outputs.To = map[string]string{"x": "/a"}, map[string]string{"y": "/b"}, map[string]string{"y": "/c"}
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			app := with(trainingApp(), "worker", func(*appdef.Component) {}) // a copy
			tt.change(&app, &app.Component("worker").Settings)
			_, problems := Build(app, withStore(request("worker", 0)))
			text := ""
			for _, p := range problems.Errors() {
				text += p.String()
			}
			if (text == "") != (tt.want == "") || !strings.Contains(text, tt.want) {
				t.Errorf("got %q, want %q", text, tt.want)
			}
		})
	}
}

// What a process is told of the host's Hadoop; an image keeps what it has of its own.
func TestHadoop(t *testing.T) {
	facts := &HadoopFacts{
		Conf: "/conf", Home: "/h", HDFSHome: "/hh", Java: "/j", JVM: "/j/lib/server", Native: "/h/lib/native",
		Classes: []string{"/h/share"}, Jars: []string{"/h/share/a.jar"}, Tickets: true, Krb5: "/krb5.conf",
	}
	whole := Hadoop{
		Conf: "/conf", Home: "/h", HDFSHome: "/hh", Java: "/j", JVM: "/j/lib/server", Native: "/h/lib/native", User: "ada",
		Tickets: "${WORK}/worker-0/app/run/krb5cc", Krb5: "/krb5.conf", Classes: []string{"/h/share"}, Jars: []string{"/h/share/a.jar"},
	}
	but := func(change func(*Hadoop)) *Hadoop {
		h := whole
		change(&h)
		return &h
	}
	for _, tt := range []struct {
		name   string
		change func(*Request)
		want   *Hadoop
	}{
		{"none", func(r *Request) { r.Hadoop = nil }, nil},
		{"all of it", func(*Request) {}, &whole},
		{"the process's own user", func(r *Request) { r.User = &UserFacts{Name: "bob", UID: 7} }, but(func(h *Hadoop) { h.User = "bob" })},
		{"whom the agent's variable names", func(r *Request) { r.Inherited = map[string]string{"HADOOP_USER_NAME": "eve"} }, but(func(h *Hadoop) { h.User = "eve" })},
		{"whom --env names", func(r *Request) {
			r.Inherited, r.Given = map[string]string{"HADOOP_USER_NAME": "eve"}, map[string]string{"HADOOP_USER_NAME": "amy"}
		}, but(func(h *Hadoop) { h.User = "amy" })},
		{
			"a token file", func(r *Request) {
				f := *facts
				f.Tokens = true
				r.Hadoop = &f
			},
			but(func(h *Hadoop) { h.Tokens = "${WORK}/worker-0/app/run/hadoop-tokens" }),
		},
		{"no Kerberos", func(r *Request) {
			f := *facts
			f.Tickets, f.Tokens = false, true
			r.Hadoop = &f
		}, but(func(h *Hadoop) { h.Tickets, h.Krb5 = "", "" })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := request("worker", 0)
			req.Hadoop = facts
			tt.change(&req)
			if req.Allocation.User == "" {
				req.Allocation.User = "ada"
			}
			p := mustBuild(t, trainingApp(), req)
			if diff := cmp.Diff(tt.want, p.Hadoop); diff != "" {
				t.Error(diff)
			}
		})
	}
	req := request("worker", 0)
	req.Hadoop, req.Engine = facts, EngineChoice{Name: "container"}
	app := with(trainingApp(), "worker", func(c *appdef.Component) { c.Limits.Image = "i" })
	for _, tt := range []struct {
		env  string
		want Hadoop
	}{
		{"HADOOP_HOME=/image", *but(func(h *Hadoop) { h.Home, h.HDFSHome, h.Native, h.Classes, h.Jars = "", "", "", []string{}, nil })},
		{"JAVA_HOME=/image", *but(func(h *Hadoop) { h.Java, h.JVM = "", "" })},
	} {
		req.Image = &ImageFacts{Env: []string{tt.env}}
		p := mustBuild(t, app, req)
		if diff := cmp.Diff(&tt.want, p.Hadoop); diff != "" {
			t.Errorf("image with %s: %s", tt.env, diff)
		}
	}
	if r := Resolve(mustBuild(t, app, req), Dirs{Work: "/w", Log: "/l"}); r.Hadoop.Tickets != "/w/worker-0/app/run/krb5cc" {
		t.Errorf("resolved: %s", r.Hadoop.Tickets)
	}
}
