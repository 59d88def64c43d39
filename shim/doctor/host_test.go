package doctor

import (
	"os"
	"path/filepath"
	"testing"
)

func TestClosedAt(t *testing.T) {
	if at := closedAt("/bin/sh"); at != "" {
		t.Errorf("/bin/sh: got closed at %s", at)
	}
	dir := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(dir, "python3")
	if err := os.WriteFile(python, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if at := closedAt(python); at != dir {
		t.Errorf("a program in a folder of mode 0700: got closed at %q, want %q", at, dir)
	}
}
