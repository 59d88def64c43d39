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
	links := t.TempDir()
	if err := os.Chmod(filepath.Dir(links), 0o755); err != nil { // which the test's folders lie in
		t.Fatal(err)
	}
	link := filepath.Join(links, "python3")
	if err := os.Symlink(python, link); err != nil {
		t.Fatal(err)
	}
	if at := closedAt(link); at != dir {
		t.Errorf("a link to it: got closed at %q, want %q", at, dir)
	}
	if got := openTo("python3", []string{links, dir}); got != "" {
		t.Errorf("the program that others take: got %q, want none", got)
	}
	if got := openTo("sh", []string{links, "/bin"}); got != "/bin/sh" {
		t.Errorf("the program that others take: got %q, want /bin/sh", got)
	}
}
