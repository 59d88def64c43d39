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

// Lines are those of a page's consoles, in their order: of those that are typed on any machine, and of those marked so.
func Lines(page, mark string) []Line {
	var found []Line
	console := false
	for text := range strings.SplitSeq(page, "\n") {
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
