package appdef

import (
	"slices"
	"strings"
	"testing"
)

func TestExpand(t *testing.T) {
	known := map[string]string{
		"USER": "ann", "ps_HOST": "h1,h2", "EMPTY": "", "BRACES": "${USER}",
		"@//site/global/a":        "A",
		"@//site/global/b":        "[${@//site/global/a}]",
		"@//site/global/c":        "${USER}/${@//site/global/b}",
		"@//site/global/loop":     "<${@//site/global/loop}>",
		"@//site/global/x":        "${@//site/global/y}",
		"@//site/global/y":        "${@//site/global/x}",
		"@//site/global/tb.port":  "6006",
		"@//site/hdfs-site/a.b.c": "dash",
		"site.global.a":           "A",
		"site.global.b":           "${site.global.a}!",
		"@//site/global/lost":     "${@//site/global/none}",
		"ps.ALLOCATED_PORT":       "4000",
	}
	for _, test := range []struct {
		name, text, want string
		unresolved       []string
	}{
		{name: "nothing", text: "", want: ""},
		{name: "no placeholder", text: "a$b{c}d", want: "a$b{c}d"},
		{name: "one", text: "${USER}", want: "ann"},
		{name: "around", text: "/u/${USER}/x", want: "/u/ann/x"},
		{name: "twice", text: "${USER}${USER}", want: "annann"},
		{name: "empty value", text: "<${EMPTY}>", want: "<>"},
		{name: "a plain value is not expanded", text: "${BRACES}", want: "${USER}"},
		{name: "unknown stays", text: "${NOBODY}/${USER}", want: "${NOBODY}/ann", unresolved: []string{"NOBODY"}},
		{name: "unknown twice is named once", text: "${B} ${A} ${B}", want: "${B} ${A} ${B}", unresolved: []string{"A", "B"}},
		{name: "host", text: "${ps_HOST}:1", want: "h1,h2:1"},
		{name: "reference", text: "${@//site/global/a}", want: "A"},
		{name: "reference chain", text: "${@//site/global/c}", want: "ann/[A]"},
		{name: "key with dots", text: "${@//site/global/tb.port}", want: "6006"},
		{name: "dictionary with a dash", text: "${@//site/hdfs-site/a.b.c}", want: "dash"},
		{name: "site form", text: "${site.global.b}", want: "A!"},
		{name: "conf form", text: "nc -l {$conf:@//site/global/tb.port}", want: "nc -l 6006"},
		{name: "conf form of something else", text: "{$conf:USER}", want: "{$conf:USER}"},
		{name: "self reference", text: "${@//site/global/loop}", want: "<${@//site/global/loop}>", unresolved: []string{"@//site/global/loop"}},
		{name: "cycle", text: "${@//site/global/x}", want: "${@//site/global/x}", unresolved: []string{"@//site/global/x"}},
		{name: "unknown behind a reference", text: "${@//site/global/lost}", want: "${@//site/global/none}", unresolved: []string{"@//site/global/none"}},
		{name: "port suffixes are text", text: "${ps.ALLOCATED_PORT}{PER_CONTAINER}", want: "4000{PER_CONTAINER}"},
		{name: "shell defaults are the shell's", text: "${x:-y} ${#a} ${a[0]} ${a%b} $HOME $(date) ${x-y}", want: "${x:-y} ${#a} ${a[0]} ${a%b} $HOME $(date) ${x-y}"},
		{name: "unclosed", text: "${USER", want: "${USER"},
		{name: "empty name", text: "${}", want: "${}"},
		{name: "nested braces", text: "${${USER}}", want: "${ann}"},
		{name: "reference without key", text: "${@//site/global}", want: "${@//site/global}"},
		{name: "utf-8", text: "é${USER}é", want: "éanné"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, unresolved := Expand(test.text, func(name string) (string, bool) { v, ok := known[name]; return v, ok })
			if got != test.want || !slices.Equal(unresolved, test.unresolved) {
				t.Errorf("Expand(%q) = %q, %q; want %q, %q", test.text, got, unresolved, test.want, test.unresolved)
			}
		})
	}
}

// A chain in which each value names the next one twice would be 2^60 values long.
func TestExpandIsBounded(t *testing.T) {
	out, unresolved := Expand("${@//site/g/0}", func(name string) (string, bool) {
		depth := len(strings.TrimPrefix(name, "@//site/g/"))
		next := "${@//site/g/" + strings.Repeat("0", depth+1) + "}"
		return next + next, true
	})
	if len(unresolved) == 0 || len(out) > 4*mostExpanded {
		t.Errorf("got %d bytes and %d names left, want a bounded text that says what is left", len(out), len(unresolved))
	}
}

func TestPlaceholders(t *testing.T) {
	got := Placeholders("${a_HOST}:${site.g.p} ${a_HOST} {$conf:@//site/g/k} ${x:-1} ${b.ALLOCATED_PORT}{PER_CONTAINER}")
	want := []string{"a_HOST", "site.g.p", "@//site/g/k", "b.ALLOCATED_PORT"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Laws: a resolved text expands to itself, and what is reported is exactly what is left.
func FuzzExpand(f *testing.F) {
	for _, seed := range []string{
		"", "${USER}", "${@//site/global/a}", "{$conf:@//site/global/a}", "${ps.ALLOCATED_PORT}{DEFAULT_1}{PER_CONTAINER}",
		"${${USER}}", "${a_HOST}:${site.global.b}", "${x:-y}", "${@//site/global/loop}", "$${USER}", "${", "}{",
	} {
		f.Add(seed, "value")
	}
	f.Add("${@//site/global/a}", "${@//site/global/b}${USER}")
	f.Fuzz(func(t *testing.T, text, value string) {
		values := map[string]string{"USER": "u", "@//site/global/a": value, "@//site/global/b": text, "@//site/global/loop": "${@//site/global/loop}", "site.global.b": value}
		lookup := func(name string) (string, bool) { v, ok := values[name]; return v, ok }
		out, unresolved := Expand(text, lookup)
		if len(unresolved) == 0 && !strings.ContainsAny(value, "${") && len(Placeholders(out)) == 0 {
			if again, left := Expand(out, lookup); again != out || len(left) > 0 {
				t.Errorf("Expand(%q) = %q, again %q %q", text, out, again, left)
			}
		}
		for _, name := range unresolved {
			if !strings.Contains(out, name) {
				t.Errorf("Expand(%q) = %q reports %q, which is not in it", text, out, name)
			}
		}
		if len(Placeholders(text)) == 0 && out != text {
			t.Errorf("Expand(%q) = %q without any placeholder", text, out)
		}
	})
}
