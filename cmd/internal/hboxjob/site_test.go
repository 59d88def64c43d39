package hboxjob

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/exit"
)

// TestProperties has Java's properties be those of the user database, and of the variables where it has none.
func TestProperties(t *testing.T) {
	const file = "root:x:0:0::/root:/bin/sh\nada:x:1001:100:Ada:/home/ada:/bin/sh\n"
	for _, test := range []struct {
		title      string
		uid        int
		user, dir  string // USER and HOME
		name, home string
		unknown    string
	}{
		{title: "a line of the file", uid: 1001, name: "ada", home: "/home/ada"},
		{title: "other variables", uid: 1001, user: "bob", dir: "/home/bob", name: "ada", home: "/home/ada"},
		{title: "LDAP", uid: 70001, name: "eve", home: "/net/eve"},
		{title: "LDAP and other variables", uid: 70001, user: "bob", dir: "/home/bob", name: "eve", home: "/net/eve"},
		{title: "variables alone", uid: 5, user: "bob", dir: "/home/bob", name: "bob", home: "/home/bob"},
		{title: "no name", uid: 5, dir: "/home/bob", home: "/home/bob", unknown: "it asks for ${user.name}, and neither "},
		{title: "no home", uid: 5, user: "bob", name: "bob", unknown: "it asks for ${user.home}, and neither "},
	} {
		t.Run(test.title, func(t *testing.T) {
			a := &account{uid: test.uid, passwd: filepath.Join(t.TempDir(), "passwd")}
			write(t, a.passwd, file)
			knows(t, "eve:*:70001:100:Eve:/net/eve:/bin/bash")
			t.Setenv("USER", test.user)
			t.Setenv("HOME", test.dir)
			for name, want := range map[string]string{"USER": test.user, "user.name": test.name, "user.home": test.home} {
				if got := a.getenv(t.Context())(name); got != want {
					t.Errorf("%s: got %q, want %q", name, got, want)
				}
			}
			if got := a.unknown; (got != nil) != (test.unknown != "") || got != nil && !strings.HasPrefix(got.Error(), test.unknown) {
				t.Errorf("unknown: got %v, want %q", got, test.unknown)
			}
		})
	}
}

// TestNoName refuses a file that asks for the name of a user who has none, and takes one that does not ask.
func TestNoName(t *testing.T) {
	knows(t, "")
	t.Setenv("USER", "")
	for value, code := range map[string]int{"team-${user.name}": exit.Usage, "${name}": 0} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "hbox-site.xml"), "<configuration><property><name>hbox.app.queue</name><value>"+value+"</value></property></configuration>")
		_, err := readSite(t.Context(), dir, &account{uid: 5, passwd: filepath.Join(dir, "passwd")})
		if exit.CodeOf(err) != code || err != nil && !strings.HasSuffix(err.Error(), "nor getent knows user 5: set USER") {
			t.Errorf("%s: got %v, want %d", value, err, code)
		}
	}
}

// knows has getent know one line of passwd.
func knows(t *testing.T, line string) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "getent"), "#!/bin/sh\nline='"+line+"'\ncase \"$line\" in *:$2:*) echo \"$line\";; *) exit 2;; esac\n")
	t.Setenv("PATH", dir)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}
