package publisher

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What was printed is read again with nothing lost.
func TestFormatsKeepAll(t *testing.T) {
	want := map[string]string{
		"plain": "value", "": "empty key", "empty": "", " led by a blank ": "  two", "a=b:c": `x=y:\z`, "#no comment": "!neither",
		"lines": "a\nb\r\nc\td\fe", "ünï": "ß", "markup": `<a href="x">&amp;</a>`,
	}
	c := publishedConfig{Entries: want, UpdatedTime: "Sat Nov 21 10:00:08 UTC 2026"}
	a, err := printProperties(c)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, readProperties(string(a.body))); diff != "" {
		t.Errorf("properties (want -, got +):\n%s\n%s", diff, a.body)
	}
	delete(want, "lines") // XML has no form feed
	if a, err = printXML(c); err != nil {
		t.Fatal(err)
	}
	var doc hadoopXML
	if err := xml.Unmarshal(a.body, &doc); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, p := range doc.Properties {
		got[p.Name] = p.Value
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("XML (want -, got +):\n%s\n%s", diff, a.body)
	}
}

// readProperties reads as java.util.Properties does (its documentation, load), for lines that end in \n alone.
func readProperties(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimLeft(strings.TrimSuffix(line, "\n"), " \t\f")
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		end := 0
		for end < len(line) && !strings.ContainsRune("=: \t\f", rune(line[end])) {
			if line[end] == '\\' {
				end++
			}
			end++
		}
		value := strings.TrimLeft(line[end:], " \t\f")
		if value != "" && (value[0] == '=' || value[0] == ':') {
			value = strings.TrimLeft(value[1:], " \t\f")
		}
		out[unescape(line[:end])] = unescape(value)
	}
	return out
}

func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
			if at := strings.IndexByte("tnrf", s[i]); at >= 0 {
				b.WriteByte("\t\n\r\f"[at])
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
