package appdef_test

import (
	"testing"

	"github.com/muster-agent/muster/appdef"
)

// A file of application.resources lies in app/resources by a name that cannot lead out of it.
func TestResourceName(t *testing.T) {
	for file, want := range map[string]string{
		"files/a.txt":                   "a.txt",
		"conf/a#b.txt":                  "a#b.txt",
		"conf/a?b:c.txt":                "a?b:c.txt",
		"/lib/a.jar":                    "a.jar",
		"hdfs://nn/x/a.jar#sha256=00":   "a.jar",
		"https://h/d/a.txt?token=a/b#x": "a.txt",
		"https://h/d/a%20b.txt":         "a b.txt",
		"/d/a%20b.txt":                  "a%20b.txt", // a path is no URL
		"file:a.txt":                    "a.txt",
		"/a/b/.":                        "",
		"/a/..":                         "",
		"file:/":                        "",
		"http://h/d/%2e%2E":             "",
		"http://h/d/a%2fb":              "",
		"http://h/d/a%00":               "",
		"http://h/d/a%zz":               "",
	} {
		if got := appdef.ResourceName(file); got != want {
			t.Errorf("%s: got %q, want %q", file, got, want)
		}
	}
}
