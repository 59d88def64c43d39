package data_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/servers/hadoop"
)

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// The files of application.resources come from the package, from this host, from a web server and from HDFS, and are
// where Slider's agent had them before INSTALL.
func TestApplicationResources(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/d/web.txt" {
			http.NotFound(w, r)
			return
		}
		if _, err := w.Write([]byte("of the web\n")); err != nil {
			return
		}
	}))
	defer server.Close()
	web := server.URL + "/d/web.txt?token=secret#sha256=" + digestOf("of the web\n")
	t.Run("of this host and the web", func(t *testing.T) {
		set := settings{
			"muster.command": "cat app/resources/* > out/all", "muster.output.out": "out", "muster.restart": "never",
		}
		j := newJob(t, 1, set)
		j.lay(map[string]string{"lib/a.txt": "of a store\n", "lib/b.txt": "of a URL\n"})
		set["global:application.resources"] = "${NN_URI}/lib/a.txt, file:" + filepath.Join(j.store, "lib/b.txt") + "#sha256=" + digestOf("of a URL\n") + "," + web
		j.define(1, set)
		j.run().succeeds(t)
		if got, want := j.files(filepath.Join(j.store, "out"))["worker-0/all"], "of a store\nof a URL\nof the web\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if strings.Contains(j.log("worker-0"), "secret") {
			t.Error("the log has the token of the URL")
		}
	})
	t.Run("of HDFS", func(t *testing.T) {
		c := hadoop.Shared(t)
		dir := c.Folder(t)
		set := settings{
			"muster.command": "cat app/resources/* > out/all", "muster.output.out": "out", "muster.restart": "never",
		}
		j := newJob(t, 1, set)
		j.put(c, dir, map[string]string{"lib/hosts.txt": "of HDFS\n"})
		set["global:application.resources"] = strings.TrimRight(c.URI, "/") + dir + "/lib/hosts.txt"
		j.define(1, set)
		j.onHadoop(c)
		j.run().succeeds(t)
		if got := j.files(filepath.Join(j.store, "out"))["worker-0/all"]; got != "of HDFS\n" {
			t.Errorf("got %q", got)
		}
	})
}

// What cannot be brought ends the run before START, and says which.
func TestApplicationResourcesRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, resources, class string
		code                   int
		words                  []string
	}{
		{"not there", "${NN_URI}/lib/none", "data", 69, []string{"application.resources: none", "/fs/lib/none"}},
		{"a folder", "${NN_URI}/lib", "definition", 65, []string{"application.resources: lib", "is a folder, want a file"}},
		{"other bytes", "${NN_URI}/lib/words#sha256=" + digestOf("other"), "definition", 65, []string{"application.resources: words: sha256: want"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, 1, settings{"muster.command": "touch ran", "global:application.resources": tt.resources})
			j.lay(map[string]string{"lib/words": "words"})
			j.run().fails(t, tt.class, tt.code, tt.words...)
			if _, err := os.Lstat(filepath.Join(j.work, "worker-0", "ran")); err == nil {
				t.Error("START ran")
			}
		})
	}
}
