package docs_test

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// documents are all that people read: names from the checkout's root.
func documents(t testing.TB) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"*.md", "doc/*.md", "doc/*/*.md", "packages/catalog/*/README.md", "tests/*/README.md"} {
		paths, err := filepath.Glob(filepath.Join(checkout, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range paths {
			name, err := filepath.Rel(checkout, p)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, filepath.ToSlash(name))
		}
	}
	if len(found) < 10 {
		t.Fatalf("found only %v", found)
	}
	return found
}

func TestLinksLeadSomewhere(t *testing.T) {
	followed := 0
	for _, name := range documents(t) {
		for _, l := range links(read(t, name)) {
			if strings.Contains(l.target, "://") || strings.HasPrefix(l.target, "mailto:") {
				continue
			}
			followed++
			if why := follow(t, name, l.target); why != "" {
				t.Errorf("%s:%d: link to %s: %s", name, l.line, l.target, why)
			}
		}
	}
	if followed < 10 {
		t.Errorf("followed only %d links: they are not found any more", followed)
	}
}

// follow says what is wrong with a relative link; nothing when it leads to a file and to a heading in it.
func follow(t testing.TB, from, target string) string {
	t.Helper()
	file, heading, toHeading := strings.Cut(target, "#")
	to := from
	if file != "" {
		to = path.Join(path.Dir(from), file)
	}
	info, err := os.Stat(filepath.Join(checkout, to))
	switch {
	case err != nil:
		return "there is no " + to
	case !toHeading:
		return ""
	case info.IsDir() || !strings.HasSuffix(to, ".md"):
		return to + " has no headings"
	case !anchors(read(t, to))[heading]:
		return to + " has no heading " + heading
	}
	return ""
}

func TestFollow(t *testing.T) {
	for target, want := range map[string]string{
		"doc/manual.md": "", "doc/manual.md#what-happens-when": "", "#your-own-script": "", "doc": "",
		"doc/nothing.md": "there is no doc/nothing.md", "doc/manual.md#what-happens": "doc/manual.md has no heading what-happens",
		"LICENSE#x": "LICENSE has no headings",
	} {
		if got := follow(t, "README.md", target); got != want {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
}
