package packages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A new key is encrypted as minisign does it, for 3 s and with 1 GiB: by the program as it is built, for under the race detector
// that is ten times as much.
func TestNewKey(t *testing.T) {
	dir, env := t.TempDir(), home(t)
	must(t, os.WriteFile(filepath.Join(dir, "app.zip"), []byte("the package"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "password"), []byte("correct horse\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "wrong"), []byte("battery\n"), 0o600))
	for _, c := range []struct {
		line string
		code int
	}{
		{"package keygen new --password-file password", 0},
		{"package sign app.zip --key new.key --password-file wrong", 65},
		{"package sign app.zip --key new.key --password-file password", 0},
		{"package verify app.zip --key new.pub", 0},
	} {
		if out, bad, code := run(t, env, dir, strings.Fields(c.line)...); code != c.code {
			t.Fatalf("muster %s: got %d, want %d\n%s%s", c.line, code, c.code, out, bad)
		}
	}
	key, err := os.ReadFile(filepath.Join(dir, "new.key"))
	must(t, err)
	if !strings.Contains(string(key), "encrypted secret key") {
		t.Errorf("got the key\n%s\nwant an encrypted one", key)
	}
}
