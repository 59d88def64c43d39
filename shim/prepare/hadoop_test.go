package prepare

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
)

// layFile makes empty files, and programs where their path has bin/.
func layFile(t *testing.T, top string, files ...string) {
	t.Helper()
	for _, name := range files {
		path := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil { //nolint:gosec // some are programs
			t.Fatal(err)
		}
	}
}

// A container is shown the folders that its process is told of, as far as it has not the host's own, and never a folder that
// every system has.
func TestHadoopMounts(t *testing.T) {
	top := files.Resolve(t.TempDir())
	layFile(t, top, "conf/core-site.xml", "h/a.jar", "h/lib/b.jar", "j/bin/java", "krb5.conf")
	t.Setenv("KRB5_CONFIG", filepath.Join(top, "krb5.conf"))
	h := &plan.Hadoop{Conf: top + "/conf", Home: top + "/h", Java: "/usr", Classes: []string{top + "/h/lib", top + "/gone"}}
	mounts := func(kind string) string {
		var all []string
		for _, m := range New(Config{}).hadoopMounts(plan.Plan{Root: plan.Root{Kind: kind}, Data: plan.Data{Hadoop: h}}) {
			if !m.ReadOnly {
				t.Errorf("%s may be written", m.To)
			}
			all = append(all, strings.TrimPrefix(m.To, top))
		}
		return strings.Join(all, " ")
	}
	for kind, want := range map[string]string{plan.RootHost: "", plan.RootImage: "/conf /h /krb5.conf"} {
		if got := mounts(kind); got != want {
			t.Errorf("root %s: got %q, want %q", kind, got, want)
		}
	}
	shown := ""
	if files.InContainer(top) {
		shown = "/conf /h /krb5.conf"
	}
	if got := mounts(plan.RootReadOnly); got != shown {
		t.Errorf("the host's root, read-only: got %q, want %q", got, shown)
	}
}
