package secret

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSecretsComeFromFiles(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(path("token"), []byte("s3cret\n"), 0o400), os.Symlink("token", path("link")),
		unix.Mkfifo(path("pipe"), 0o600), os.WriteFile(path("long"), nil, 0o600), os.Truncate(path("long"), 1<<40)); err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]string{
		"file:" + path("token"): "s3cret",
		"file:" + path("link"):  "s3cret", // as mounted by launchers
		"file:" + path("pipe"):  "not a regular file",
		"file:" + dir:           "not a regular file",
		"file:/dev/zero":        "not a regular file",
		"file:" + path("long"):  "longer than",
		"file:" + path("none"):  "no such file",
	} {
		values, err := Read(map[string]string{"TOKEN": ref})
		if got := values["TOKEN"]; got != want && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "secret TOKEN")) {
			t.Errorf("%s: got %q, %v; want %s", ref, got, err, want)
		}
	}
}
