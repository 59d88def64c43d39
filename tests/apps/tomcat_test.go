package apps

import (
	"archive/zip"
	"bytes"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/commandline"
)

// Tomcat by its own catalina.sh, whose pid file lies where nobody else looks: its quick link answers what the war says,
// and what a visitor has left is there after a kill and after a stop.
func TestTomcat(t *testing.T) {
	a := newApp(t, "tomcat", "tomcat")
	must(t, os.MkdirAll(filepath.Join(a.pack, "resources"), 0o755))
	a.write("resources/visits.war", war(t, "testdata/war/visits"))
	a.create(1)
	link := a.link()
	a.answers(link+"?name=Ada", "visitors: Ada")

	if end := a.kill("TOMCAT-0", "app/install/catalina.pid"); !strings.HasPrefix(end, "killed by SIGKILL: ") {
		t.Errorf("the last life ended with %q, want the signal, and what a pid file would tell", end)
	}
	if now := a.link(); now != link {
		t.Errorf("the quick link is %s after the kill, want %s as before", now, link)
	}
	a.answers(link+"?name=Grace", "visitors: Ada, Grace")

	before := a.instances()
	a.flex("TOMCAT", 2, "TOMCAT-1", "none")
	a.up(2)
	a.left(before)
	servers := a.servers(2, "http")
	a.answers("http://"+servers[1]+"/visits/?name=Edsger", "visitors: Edsger")
	data := commandline.Parse[map[string]string](t, a.do("slider", "registry", "--name", a.name,
		"--getconf", "ComponentInstanceData", "--format", "json"))
	if want := map[string]string{"TOMCAT-0.port": servers[0], "TOMCAT-1.port": servers[1]}; !maps.Equal(data, want) {
		t.Errorf("the instances' own exports are %v, want %v", data, want)
	}
	a.flex("TOMCAT", 1, "none", "TOMCAT-1")
	a.up(1)

	a.slider("stop")
	a.slider("start", "--wait", "60")
	a.up(1)
	a.answers(a.link()+"?name=Alan", "visitors: Ada, Grace, Alan")
	a.stop("TOMCAT-0")
}

// war packs a folder as Java's jar does.
func war(t *testing.T, dir string) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	must(t, w.AddFS(os.DirFS(dir)))
	must(t, w.Close())
	return packed.Bytes()
}

// link is the app's quick link.
func (a *app) link() string {
	a.t.Helper()
	links := a.exports("quicklinks", "Visits")
	if len(links) != 1 {
		a.t.Fatalf("%d quick links, want 1: %v", len(links), links)
	}
	return links[0]
}

// answers asks for a page, once there is one, and compares the answer.
func (a *app) answers(url, want string) {
	a.t.Helper()
	var got []byte
	a.await(url+" to answer", func() bool {
		ask, err := http.NewRequestWithContext(a.t.Context(), http.MethodGet, url, http.NoBody)
		must(a.t, err)
		answer, err := http.DefaultClient.Do(ask)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		got, err = io.ReadAll(answer.Body)
		return err == nil && answer.StatusCode == http.StatusOK
	})
	if strings.TrimSpace(string(got)) != want {
		a.t.Errorf("%s answered %q, want %q", url, got, want)
	}
}
