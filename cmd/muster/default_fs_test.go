package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/tests/need"
)

func TestDefaultFilesystem(t *testing.T) {
	site := func(properties string) string {
		return `<?xml version="1.0"?><!-- site --><configuration>` + properties + `</configuration>`
	}
	property := func(name, value string) string {
		return "<property><name>" + name + "</name><value>\n " + value + " </value></property>"
	}
	const fromSite = "fs.defaultFS of core-site.xml"
	for _, tt := range []struct {
		name, flag, site string
		want             filesystem
		warning, refused string
	}{
		{"nothing", "", "", filesystem{uri: plan.DefaultStore}, "", ""},
		{"the flag", "hdfs://nn:9000/", site(property("fs.defaultFS", "hdfs://other")), filesystem{"hdfs://nn:9000", "--default-fs"}, "", ""},
		{"a folder", "/data/", "", filesystem{"file:/data", "--default-fs"}, "", ""},
		{"file with a host", "file://localhost/data", "", filesystem{"file:/data", "--default-fs"}, "", ""},
		{"Hadoop's", "", site(property("a", "b") + property("fs.defaultFS", "hdfs://nn:8020")), filesystem{"hdfs://nn:8020", fromSite}, "", ""},
		{"the older name", "", site(property("fs.default.name", "hdfs://old")), filesystem{"hdfs://old", fromSite}, "", ""},
		{"both names", "", site(property("fs.defaultFS", "hdfs://new") + property("fs.default.name", "hdfs://old")), filesystem{"hdfs://new", fromSite}, "", ""},
		{"the last counts", "", site(property("fs.defaultFS", "hdfs://a") + property("fs.defaultFS", "hdfs://b")), filesystem{"hdfs://b", fromSite}, "", ""},
		{"a final one stays", "", site("<property><name>fs.defaultFS</name><value>hdfs://a</value><final>true</final></property>" + property("fs.defaultFS", "hdfs://b")), filesystem{"hdfs://a", fromSite}, "", ""},
		{"no property of it", "", site(property("a", "b")), filesystem{uri: plan.DefaultStore}, "", ""},
		{"no XML", "", "<configuration>", filesystem{uri: plan.DefaultStore}, "core-site.xml: XML syntax error", ""},
		{"a variable", "", site(property("fs.defaultFS", "hdfs://${host}")), filesystem{uri: plan.DefaultStore}, "want a URI without variables", ""},
		{"no scheme", "data", "", filesystem{}, "", "want a URI such as hdfs://HOST:PORT"},
		{"a relative file", "file:data", "", filesystem{}, "", "want a path from / on"},
		{"another host's file", "file://h/data", "", filesystem{}, "", `got host "h"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("HADOOP_CONF_DIR", dir)
			if tt.site != "" {
				writeFile(t, filepath.Join(dir, "core-site.xml"), tt.site)
			}
			got, warning, err := (&filesystemFlag{uri: tt.flag}).resolve()
			if tt.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tt.refused) {
					t.Fatalf("got %v, want %s", err, tt.refused)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("got %+v, %v, want %+v", got, err, tt.want)
			}
			if (warning != nil) != (tt.warning != "") || warning != nil && !strings.Contains(warning.Error(), tt.warning) {
				t.Errorf("warning %v, want %q", warning, tt.warning)
			}
		})
	}
}

// What a definition may name of the host does not depend on links that somebody has laid.
func TestAdmitted(t *testing.T) {
	if os.Geteuid() != 0 {
		need.Skip(t, "only an agent that is root could do more than its process")
	}
	work, outside := t.TempDir(), t.TempDir()
	if err := os.MkdirAll(filepath.Join(work, "store"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(work, "store", "link")); err != nil {
		t.Fatal(err)
	}
	image, readOnly, host := plan.Plan{Root: plan.Root{Kind: plan.RootImage}}, plan.Plan{Root: plan.Root{Kind: plan.RootReadOnly}}, plan.Plan{Root: plan.Root{Kind: plan.RootHost}}
	for _, tt := range []struct {
		name  string
		plan  plan.Plan
		path  string
		write bool
		agent *agent
		ok    bool
	}{
		{"its own store", image, filepath.Join(work, "store", "x"), true, &agent{}, true},
		{"a link out of it", image, filepath.Join(work, "store", "link", "x"), true, &agent{}, false},
		{"muster's own", host, filepath.Join(work, "package", "x"), true, &agent{}, false},
		{"muster's own mark", host, filepath.Join(work, ".outputs-worker-0"), false, &agent{}, false},
		{"the work folder", host, work, false, &agent{}, false},
		{"the host, from an image", image, "/etc/shadow", false, &agent{}, false},
		{"the host, which it could read", readOnly, "/etc/shadow", false, &agent{}, true},
		{"the host, which it could not write", readOnly, "/etc/cron.d", true, &agent{}, false},
		{"the host's root", host, "/etc/cron.d", true, &agent{}, true},
		{"as a user", image, outside, true, &agent{user: &plan.UserFacts{UID: 65534}}, true},
		{"in the named filesystem", image, filepath.Join(outside, "x"), true, &agent{filesystem: filesystem{"file:" + outside, "--default-fs"}}, true},
		{"beside the named filesystem", image, outside + "x", true, &agent{filesystem: filesystem{"file:" + outside, "--default-fs"}}, false},
		{"what the operator mounts", image, filepath.Join(outside, "x"), true, &agent{policy: policy.Policy{Mounts: []policy.Mount{{Path: outside}}}}, true},
		{"what the operator mounts to be read", image, filepath.Join(outside, "x"), true, &agent{policy: policy.Policy{Mounts: []policy.Mount{{Path: outside, ReadOnly: true}}}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &agent{workDir: work, user: tt.agent.user, filesystem: tt.agent.filesystem, policy: tt.agent.policy}
			if _, err := a.admitted(tt.plan, tt.path, tt.write); (err == nil) != tt.ok {
				t.Errorf("got %v, want it admitted: %t", err, tt.ok)
			}
		})
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
