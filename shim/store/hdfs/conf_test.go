package hdfs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func lay(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func site(properties ...string) string {
	return "<?xml version=\"1.0\"?>\n<configuration>" + strings.Join(properties, "\n") + "</configuration>"
}

func property(name, value string) string {
	return "<property><name> " + name + " </name><value> " + value + "\n</value></property>"
}

func TestLoadConf(t *testing.T) {
	t.Setenv("MUSTER_TEST_HOST", "h9")
	dir := lay(t, map[string]string{
		"core-site.xml": site(property("fs.default.name", "hdfs://lab/"), property("dfs.replication", "1"),
			"<property><name>dfs.blocksize</name><value>64m</value><final>true</final></property>"),
		"hdfs-site.xml": site(property("dfs.replication", "2"), property("dfs.blocksize", "1m"), property("dfs.nameservices", "lab, one,two"),
			property("dfs.ha.namenodes.lab", "a,b"), property("dfs.namenode.rpc-address.lab.a", "${host}:9000"), property("dfs.namenode.rpc-address.lab.b", "${env.MUSTER_TEST_HOST}"),
			property("host", "h1"), property("dfs.namenode.rpc-address.one", "h2:8021"), property("loop", "${loop}x"), property("none", "${no.such}")),
	})
	c, err := LoadConf(dir)
	if err != nil {
		t.Fatal(err)
	}
	if c.DefaultFS() != "hdfs://lab" || c.blockSize() != 64<<20 || c.replication() != 2 || c.get("none") != "${no.such}" || c.umask() != 0o022 {
		t.Errorf("got %v", c.filled())
	}
	if got, want := c.Nameservices(), []string{"lab", "one", "two"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for authority, want := range map[string]string{
		"lab": "h1:9000 h9:8020", "one": "h2:8021", "host": "host:8020", "host:1": "host:1", "[::1]": "[::1]:8020", "[::1]:9": "[::1]:9",
	} {
		if got, err := c.nameNodes(authority); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, %v, want %s", authority, got, err, want)
		}
	}
	if _, err := c.nameNodes("two"); err == nil || !strings.Contains(err.Error(), "dfs.namenode.rpc-address.two") {
		t.Errorf("a nameservice without addresses: %v", err)
	}
	if c, err := LoadConf(t.TempDir()); err != nil || len(c) != 0 {
		t.Errorf("an empty folder: %v, %v", c, err)
	}
	for text, want := range map[string]string{
		"<configuration><property>": "unexpected EOF",
		"<html></html>":             "want <configuration>",
		"<configuration><include href=\"x.xml\"/></configuration>": "include of \"x.xml\"",
	} {
		dir := lay(t, map[string]string{"hdfs-site.xml": text})
		if _, err := LoadConf(dir); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: got %v, want %s and the file", text, err, want)
		}
	}
}

// A value may name other keys, as Hadoop has it.
func TestConfSubstitutes(t *testing.T) {
	c, err := ParseConf([]byte(`<configuration>
<property><name>yarn.resourcemanager.hostname.rm1</name><value>${rm.host}.example</value></property>
<property><name>rm.host</name><value>a</value></property>
<property><name>web</name><value>http://${yarn.resourcemanager.hostname.rm1}:8088/${user.name}/${rm.host}</value></property>
<property><name>itself</name><value>x${itself}</value></property>
</configuration>`))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"yarn.resourcemanager.hostname.rm1": "a.example",
		"web":                               "http://a.example:8088/${user.name}/a",
		"itself":                            strings.Repeat("x", 21) + "${itself}",
	} {
		if got := c[key]; got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
}

func TestUmask(t *testing.T) {
	for text, want := range map[string]int{
		"": 0o022, "022": 0o022, "0077": 0o077, "27": 0o027, "u=rwx,g=rx,o=rx": 0o022, "u=rwx,g=rx,o=": 0o027, "u=rwx,go=": 0o077, "a=rwx": 0, "u=rwx, g=r , o=x": 0o036,
		"u=rwx": 0o077, "999": -1, "rwx": -1, "u+w": -1, "u=rwz": -1,
	} {
		c := Conf{"fs.permissions.umask-mode": text}
		if err := c.check(); (err != nil) != (want < 0) || want >= 0 && int(c.umask()) != want {
			t.Errorf("%q: got %03o, %v, want %03o", text, c.umask(), err, want)
		}
	}
	for name, value := range map[string]string{"dfs.blocksize": "128q", "dfs.replication": "three"} {
		if err := (Conf{name: value}).check(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: got %v", name, value, err)
		}
	}
	if err := (Conf{"dfs.blocksize": "1000"}).check(); err == nil {
		t.Error("a block size that is no multiple of a chunk is taken")
	}
}

func TestParseURL(t *testing.T) {
	for _, tt := range []struct{ url, authority, path, err string }{
		{"hdfs://lab/a/b", "lab", "/a/b", ""},
		{"HDFS://nn.example.com:9000/a//b/", "nn.example.com:9000", "/a/b", ""},
		{"hdfs://lab", "lab", "/", ""},
		{"hdfs:///a", "", "/a", ""},
		{"hdfs:/a b%20c?d#e", "", "/a b%20c?d#e", ""},
		{"hdfs://lab/../../etc", "lab", "/etc", ""},
		{"hdfs://127.0.0.1:1/x", "127.0.0.1:1", "/x", ""},
		{"hdfs://[::1]:1/x", "[::1]:1", "/x", ""},
		{"hdfs://", "", "", "want hdfs://CLUSTER/PATH"},
		{"hdfs:a", "", "", "want a path from / on"},
		{"hdfs://ada@lab/a", "", "", "HADOOP_USER_NAME"},
		{"hdfs://lab:/a", "", "", "port"},
		{"hdfs://lab:70000/a", "", "", "port"},
		{"hdfs://la b/a", "", "", "nameservice"},
		{"hdfs://lab/a\x00", "", "", "zero byte"},
		{"s3://lab/a", "", "", "want hdfs:"},
	} {
		authority, path, err := parseURL(tt.url)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%q: got %v, want %s", tt.url, err, tt.err)
			}
		} else if err != nil || authority != tt.authority || path != tt.path {
			t.Errorf("%q: got %q, %q, %v", tt.url, authority, path, err)
		}
	}
}

func TestOpenSaysWhatWouldDo(t *testing.T) {
	empty, viewfs := t.TempDir(), lay(t, map[string]string{"core-site.xml": site(property("fs.defaultFS", "viewfs://all"))})
	torn := lay(t, map[string]string{"core-site.xml": "<configuration"})
	for _, tt := range []struct{ url, dir, want string }{
		{"hdfs:///a", empty, "no fs.defaultFS"},
		{"hdfs:///a", viewfs, "fs.defaultFS is viewfs://all"},
		{"hdfs://lab/a", torn, "--hadoop-conf"},
		{"hdfs://", empty, "write hdfs://CLUSTER/PATH"},
	} {
		if _, _, err := (Config{Conf: tt.dir, User: "ada"}).Open(t.Context(), tt.url); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.url, err, tt.want)
		}
	}
}

func FuzzParseConf(f *testing.F) {
	f.Add([]byte(site(property("a", "${b}"), property("b", "${a}${a}"))))
	f.Add([]byte(site(property("dfs.nameservices", "a,,b"), property("dfs.ha.namenodes.a", "x"), property("dfs.umaskmode", "777"))))
	f.Add([]byte("<!DOCTYPE x [<!ENTITY a \"aaaa\">]><configuration>&a;</configuration>"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := ParseConf(text)
		if err != nil {
			return
		}
		for name := range c {
			if len(c.get(name)) > maxConf {
				t.Errorf("%q grows to %d bytes", name, len(c.get(name)))
			}
		}
		for _, ns := range append(c.Nameservices(), "lab") {
			all, err := c.nameNodes(ns)
			if err == nil && len(all) == 0 {
				t.Errorf("%q: neither NameNodes nor an error", ns)
			}
		}
		if m := c.umask(); m > 0o777 {
			t.Errorf("umask %o", m)
		}
		c.blockSize()
		c.replication()
		_, _ = c.defaultAuthority("/conf")
	})
}

// What is taken is printed so that it is taken again, and no path leads above the root.
func FuzzParseURL(f *testing.F) {
	for _, url := range []string{"hdfs://lab/a", "hdfs:///", "hdfs:/../x", "hdfs://[::1]:80/%2e", "hdfs://a@b/c"} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, url string) {
		authority, path, err := parseURL(url)
		if err != nil {
			return
		}
		if !strings.HasPrefix(path, "/") || strings.Contains(path+"/", "/../") {
			t.Errorf("%q: path %q", url, path)
		}
		again, at, err := parseURL("hdfs://" + authority + path)
		if err != nil || again != authority || at != path {
			t.Errorf("%q: got %q, %q, printed they are %q, %q, %v", url, authority, path, again, at, err)
		}
	})
}
