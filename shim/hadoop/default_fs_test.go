package hadoop

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/plan"
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
		want             DefaultFS
		warning, refused string
	}{
		{"nothing", "", "", DefaultFS{URI: plan.DefaultStore}, "", ""},
		{"the flag", "hdfs://nn:9000/", site(property("fs.defaultFS", "hdfs://other")), DefaultFS{"hdfs://nn:9000", "--default-fs"}, "", ""},
		{"a folder", "/data/", "", DefaultFS{"file:/data", "--default-fs"}, "", ""},
		{"file with a host", "file://localhost/data", "", DefaultFS{"file:/data", "--default-fs"}, "", ""},
		{"Hadoop's", "", site(property("a", "b") + property("fs.defaultFS", "hdfs://nn:8020")), DefaultFS{"hdfs://nn:8020", fromSite}, "", ""},
		{"the older name", "", site(property("fs.default.name", "hdfs://old")), DefaultFS{"hdfs://old", fromSite}, "", ""},
		{"both names", "", site(property("fs.defaultFS", "hdfs://new") + property("fs.default.name", "hdfs://old")), DefaultFS{"hdfs://new", fromSite}, "", ""},
		{"the last counts", "", site(property("fs.defaultFS", "hdfs://a") + property("fs.defaultFS", "hdfs://b")), DefaultFS{"hdfs://b", fromSite}, "", ""},
		{"a final one stays", "", site("<property><name>fs.defaultFS</name><value>hdfs://a</value><final>true</final></property>" + property("fs.defaultFS", "hdfs://b")), DefaultFS{"hdfs://a", fromSite}, "", ""},
		{"no property of it", "", site(property("a", "b")), DefaultFS{URI: plan.DefaultStore}, "", ""},
		{"no XML", "", "<configuration>", DefaultFS{URI: plan.DefaultStore}, "core-site.xml: XML syntax error", ""},
		{"a variable", "", site(property("fs.defaultFS", "hdfs://${host}")), DefaultFS{URI: plan.DefaultStore}, "want a URI without variables", ""},
		{"no scheme", "data", "", DefaultFS{}, "", "want a URI such as hdfs://HOST:PORT"},
		{"a relative file", "file:data", "", DefaultFS{}, "", "want a path from / on"},
		{"another host's file", "file://h/data", "", DefaultFS{}, "", `got host "h"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("HADOOP_CONF_DIR", dir)
			if tt.site != "" {
				writeFile(t, filepath.Join(dir, "core-site.xml"), tt.site)
			}
			got, warning, err := FindDefaultFS(tt.flag, Login{})
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

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
