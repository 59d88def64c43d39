package cachedir

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// The cache is where the manual says, and without a home in nobody else's folder.
func TestCacheDir(t *testing.T) {
	home, local := t.TempDir(), t.TempDir()
	nobodys := "/scratch/muster-cache-" + strconv.Itoa(os.Geteuid())
	everybodys := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(everybodys, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(everybodys, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, xdg, home, local, want string }{
		{name: "home", home: home, local: local, want: filepath.Join(home, ".cache/muster")},
		{name: "no home", want: nobodys},
		{name: "named", xdg: "/var/cache/ann", home: home, want: "/var/cache/ann/muster"},
		{name: "a home that nobody can write to", home: "/dev/null", want: nobodys},
		{name: "YARN's container", home: "/dev/null", local: local + ",/other", want: filepath.Join(local, "muster-cache")},
		{name: "YARN's container, where others may write", home: "/dev/null", local: everybodys, want: nobodys},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("XDG_CACHE_HOME", c.xdg)
			t.Setenv("HOME", c.home)
			t.Setenv("LOCAL_DIRS", c.local)
			t.Setenv("TMPDIR", "/scratch")
			if got := Default(); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
