package job

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Line is one that a page has its reader type, and what it says: … stands for anything.
type Line struct {
	Text string
	Says []string
}

// Page is the text of a page of the documents.
func Page(t testing.TB, page string) string {
	t.Helper()
	document, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(document)
}

// Part is the text of a part of a page; name is its heading.
func Part(t testing.TB, page, name string) string {
	t.Helper()
	_, part, ok := strings.Cut(Page(t, page), "\n## "+name+"\n")
	if !ok {
		t.Fatalf("%s has no part %s", page, name)
	}
	part, _, _ = strings.Cut(part, "\n## ")
	return part
}

// Lines are those of a part's consoles, in their order: of those that are typed on any machine, and of those marked so.
func Lines(part, mark string) []Line {
	var found []Line
	console := false
	for text := range strings.SplitSeq(part, "\n") {
		if language, ok := strings.CutPrefix(text, "```"); ok {
			console = language == "console" || language == "console "+mark
			continue
		}
		typed, isTyped := strings.CutPrefix(text, "$ ")
		switch {
		case !console:
		case isTyped:
			found = append(found, Line{Text: typed})
		case strings.TrimSpace(text) != "" && text != "…" && len(found) > 0:
			last := &found[len(found)-1]
			last.Says = append(last.Says, text)
		}
	}
	return found
}

// Check holds what was said to what is quoted.
func (l Line) Check(t testing.TB, said string) {
	t.Helper()
	for _, quoted := range l.Says {
		form := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimRight(quoted, " ")), "…", ".*")
		if !regexp.MustCompile(`(?m)^` + form + ` *$`).MatchString(said) {
			t.Errorf("%s: does not say %q but\n%s", l.Text, quoted, said)
		}
	}
}
