package plan

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/muster-agent/muster/appdef"
)

// FuzzWords: what was split and is quoted splits into the same again; without quotes and backslashes words are what
// blanks separate.
func FuzzWords(f *testing.F) {
	for _, text := range []string{"", "a b", `--x='1 2' "y z"`, `a\ b "\$HOME" '`, "\\", `''`, "\t\r\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := words(text)
		if !strings.ContainsAny(text, `'"\`) {
			if want := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n", r) }); err != nil || !slices.Equal(got, want) {
				t.Errorf("words(%q) = %q, %v, want %q", text, got, err, want)
			}
		}
		if err != nil {
			return
		}
		quoted := make([]string, len(got))
		for i, word := range got {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		if again, err := words(strings.Join(quoted, " ")); err != nil || !slices.Equal(again, got) {
			t.Errorf("words(%q) = %q, quoted %q, %v", text, got, again, err)
		}
	})
}

// FuzzPortTexts: a value with its tokens filled reads as appdef fills it, and there is a port for each token.
func FuzzPortTexts(f *testing.F) {
	for _, value := range []string{
		"", "80", "${ps.ALLOCATED_PORT}", "${ps.ALLOCATED_PORT}{DEFAULT_5}{PER_CONTAINER}", "${worker.ALLOCATED_PORT}",
		"a${ps.ALLOCATED_PORT}{PER_CONTAINER},${ps.ALLOCATED_PORT}{DEFAULT_}{x}", "${ps.ALLOCATED_PORT}${worker.ALLOCATED_PORT}",
		"${ps.ALLOCATED_PORT}{DEFAULT_${ps.ALLOCATED_PORT}}", "${ps.ALLOCATED_PORT}{DEFAULT_+1}",
	} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if strings.Contains(value, portToken) {
			return
		}
		app := appdef.App{Components: []appdef.Component{{Name: "ps", Instances: 1, Config: map[string]string{"site.global.k": value}}}}
		needs := app.PortNeeds("ps")
		if len(needs) == 0 {
			if got := portTexts(&app, "ps", 0)["global.k"]; strings.Contains(got, portToken) {
				t.Fatalf("%q: got %q, want no token: nothing is claimed", value, got)
			}
			return
		}
		text, numbers := portTexts(&app, "ps", 0)["global.k"], []int{}
		ports := NeedsOf(app, "ps", 0).Ports
		for i, p := range ports {
			numbers = append(numbers, 20000+i)
			text = strings.Replace(text, portToken+p.Name+"}}", strconv.Itoa(20000+i), 1)
		}
		if want := needs[0].Fill(numbers...); text != want || len(ports) != len(needs[0].Claims) {
			t.Errorf("%q: got %q with %d ports, want %q with %d", value, text, len(ports), want, len(needs[0].Claims))
		}
	})
}
