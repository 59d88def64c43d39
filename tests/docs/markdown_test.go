package docs_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// fence is a fenced block of a document.
type fence struct {
	lang string
	line int // of its first line of text, from 1
	text []string
}

// fences are a document's fenced blocks in order, and its lines with those blanked out.
func fences(document string) (blocks []fence, prose []string) {
	inside := false
	for i, line := range strings.Split(document, "\n") {
		mark, isMark := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isMark && !inside:
			blocks = append(blocks, fence{lang: mark, line: i + 2})
			fallthrough
		case isMark:
			inside = !inside
			line = ""
		case inside:
			last := &blocks[len(blocks)-1]
			last.text = append(last.text, line)
			line = ""
		}
		prose = append(prose, line)
	}
	return blocks, prose
}

// link is a reference from one document to another place.
type link struct {
	line   int
	target string
}

var (
	inlineCode = regexp.MustCompile("`[^`]*`")
	linkForm   = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)>?[^)]*\)`)
	refForm    = regexp.MustCompile(`^\[[^\]]+\]:\s+(\S+)`)
)

// links are the targets of a document's links, without what stands in code.
func links(document string) []link {
	var found []link
	_, prose := fences(document)
	text := inlineCode.ReplaceAllStringFunc(strings.Join(prose, "\n"), func(code string) string {
		return strings.Map(func(r rune) rune {
			if r == '\n' {
				return r
			}
			return 'x'
		}, code)
	})
	for i, line := range strings.Split(text, "\n") {
		for _, m := range linkForm.FindAllStringSubmatch(line, -1) {
			found = append(found, link{i + 1, m[1]})
		}
		if m := refForm.FindStringSubmatch(line); m != nil {
			found = append(found, link{i + 1, m[1]})
		}
	}
	return found
}

// anchors are the names that a document's headings can be linked by, as GitHub makes them.
func anchors(document string) map[string]bool {
	found := map[string]bool{}
	_, prose := fences(document)
	for _, line := range prose {
		title := strings.TrimLeft(line, "#")
		level := len(line) - len(title)
		if level == 0 || level > 6 || !strings.HasPrefix(title, " ") {
			continue
		}
		name := anchor(title)
		for unique, n := name, 1; ; n++ {
			if !found[unique] {
				found[unique] = true
				break
			}
			unique = name + "-" + string(rune('0'+n))
		}
	}
	return found
}

// anchor is a heading in lower case, its spaces as dashes, letters and digits kept, the rest dropped.
func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(title))
}

// span is a piece of a document that stands in code.
type span struct {
	line int
	code string
}

// spans are the lines of a document's fenced blocks that have no language, a shell's or systemd's, its indented lines, and
// its inline code.
func spans(document string) []span {
	blocks, prose := fences(document)
	var found []span
	for _, b := range blocks {
		if b.lang != "" && b.lang != "console" && b.lang != "sh" && b.lang != "ini" {
			continue
		}
		for i, line := range b.text {
			found = append(found, span{b.line + i, strings.TrimPrefix(strings.TrimSpace(line), "$ ")})
		}
	}
	for i, line := range prose {
		if code, ok := strings.CutPrefix(line, "    "); ok {
			found = append(found, span{i + 1, strings.TrimSpace(code)})
		}
	}
	text := strings.Join(prose, "\n")
	for _, at := range inlineCode.FindAllStringIndex(text, -1) {
		found = append(found, span{1 + strings.Count(text[:at[0]], "\n"), strings.Trim(text[at[0]:at[1]], "`")})
	}
	return found
}

func TestMarkdown(t *testing.T) {
	const document = "# One `two`: three?\n\n[a](b.md#c), `[x](y)` and\n[d]: e.md\n```json\n{}\n[f](g)\n```\n## Twice\n## Twice\n`muster ps`\n"
	blocks, _ := fences(document)
	if len(blocks) != 1 || blocks[0].lang != "json" || blocks[0].line != 6 || strings.Join(blocks[0].text, "|") != "{}|[f](g)" {
		t.Errorf("fences: got %+v", blocks)
	}
	if got := links(document); len(got) != 2 || got[0] != (link{3, "b.md#c"}) || got[1] != (link{4, "e.md"}) {
		t.Errorf("links: got %+v", got)
	}
	names := anchors(document)
	for _, want := range []string{"one-two-three", "twice", "twice-1"} {
		if !names[want] {
			t.Errorf("anchors: got %v, want %s among them", names, want)
		}
	}
	if got := spans(document); got[len(got)-1] != (span{11, "muster ps"}) {
		t.Errorf("spans: got %+v", got)
	}
}
