// Package jobtest plays the client programs of launchers for the tests of rooms client.
package jobtest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Fake has a shell script play a launcher's client. It finds its folder in $FAKE, and its words are kept in the file
// asked.
func Fake(t *testing.T, client, script string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	text := "#!/bin/sh\necho \"$*\" >>\"$FAKE/asked\"\n" + script
	if err := os.WriteFile(filepath.Join(dir, client), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FAKE", dir)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return dir
}

// Write lays a file that a fake reads.
func Write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Asked are the command lines that a fake has had.
func Asked(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "asked"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}
