package docs_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write doc/screens.md anew from what the listings print")

const screens = "doc/screens.md"

// A screen of the page: its command is what the fence behind the prompt types, all else what was printed.
var screenForm = regexp.MustCompile("(?s)```text\n\\$ (.*?)\n(.*?)```\n")

// What differs from run to run, and what stands for it in a comparison.
var varying = []struct{ form, as string }{
	{`\d{4}-\d\d-\d\d`, "DATE"},
	{`\d\d:\d\d:\d\d`, "TIME"},
	{`\d{10}-[0-9a-z]+`, "RUN"},
	{`\b\d+(\.\d+)?m?s\b`, "TOOK"},
	{`\b\d+(\.\d+)? MB\b`, "SIZE"},
	{`(conductor +)\S+`, "${1}ONE"},
	{`[ \t]+`, " "},
	{` \n`, "\n"},
}

func steady(text string) string {
	for _, v := range varying {
		text = regexp.MustCompile(v.form).ReplaceAllString(text, v.as)
	}
	return strings.TrimSpace(text)
}

// TestScreens has a run whose worker fails once, and sees that each screen of the page is what 80 columns show.
func TestScreens(t *testing.T) {
	d := newDesk(t)
	page := read(t, screens)
	script := regexp.MustCompile("(?s)```sh (\\S+)\n(.*?)```").FindStringSubmatch(page)
	d.write(script[1], script[2])
	t.Setenv("COLUMNS", "80")
	commands := screenForm.FindAllStringSubmatch(page, -1)
	if len(commands) < 6 {
		t.Fatalf("%s: got %d screens, want all listings", screens, len(commands))
	}
	d.leaves("bin/" + strings.Replace(commands[0][1], " -- ", " --output table -- ", 1) + " 2> table.txt > /dev/null")
	// each instance's progress is known a moment after the last one's
	awaitText(t, d, "bin/muster status d1", regexp.MustCompile(`(?s)ps-0[^\n]*40%.*worker-0[^\n]*40%.*worker-1 +running +1 +2 +40%.*worker-2[^\n]*40%`))
	fresh := map[string]string{}
	for _, c := range commands {
		line := c[1]
		switch {
		case strings.HasPrefix(line, "muster run"):
			fresh[line] = lastTable(awaitText(t, d, "cat table.txt", regexp.MustCompile(
				`ps-0[^\n]*40 %[^\n]*\n[^\n]*worker-0[^\n]*40 %[^\n]*\n[^\n]*worker-1 +running +1 +1 +1 +40 %[^\n]*\n[^\n]*worker-2[^\n]*40 %`)))
		case strings.HasPrefix(line, "muster doctor"):
			out, _ := d.types("bin/" + line) // a host that lacks something answers so
			fresh[line] = out
		default:
			out, code := d.types("bin/" + line)
			if code != 0 {
				t.Fatalf("%s: exit code %d\n%s", line, code, out)
			}
			fresh[line] = out
		}
		fresh[line] = strings.NewReplacer(d.dir+"/.state", "/run/muster", d.dir+"/.home", "/root").Replace(fresh[line])
		for l := range strings.Lines(fresh[line]) {
			if utf8.RuneCountInString(strings.TrimRight(l, "\n")) > 80 && strings.Contains(strings.TrimSpace(l), " ") &&
				!strings.Contains(l, "/root/") {
				t.Errorf("%s: a line over 80 columns: %s", line, l)
			}
		}
	}
	d.types("bin/muster stop d1")
	if *update {
		page = screenForm.ReplaceAllStringFunc(page, func(block string) string {
			line := screenForm.FindStringSubmatch(block)[1]
			var out strings.Builder
			for l := range strings.Lines(fresh[line]) {
				out.WriteString(strings.TrimRight(l, " \n") + "\n")
			}
			return "```text\n$ " + line + "\n" + out.String() + "```\n"
		})
		d.must(os.WriteFile(filepath.Join(checkout, screens), []byte(page), 0o644))
		return
	}
	for _, c := range commands {
		line := c[1]
		if strings.HasPrefix(line, "muster doctor") {
			// What this host has is not what that one has: the names of the checks are the same.
			have, want := checkNames(c[2]), checkNames(fresh[line])
			for _, name := range want {
				if !strings.Contains(" "+strings.Join(have, " ")+" ", " "+name+" ") {
					t.Errorf("%s: the page lacks the check %s", line, name)
				}
			}
			continue
		}
		got, want := steady(fresh[line]), steady(c[2])
		if strings.HasPrefix(line, "muster logs") { // what both streams have of one moment comes in any order
			got, want = sortedLines(got), sortedLines(want)
		}
		if got != want {
			t.Errorf("%s: go test ./tests/docs -run TestScreens -update\ngot  %s\nwant %s", line, got, want)
		}
	}
}

// awaitText types a line until it prints the form.
func awaitText(t *testing.T, d desk, line string, form *regexp.Regexp) string {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(watchdog); ; <-tick.C {
		out, _ := d.types(line)
		if form.MatchString(out) {
			return out
		}
		if time.Now().After(end) {
			t.Fatalf("%s: got no %s in\n%s", line, form, out)
		}
	}
}

// lastTable is the table as it stands on the terminal: each drawing takes the place of the last one.
func lastTable(text string) string {
	all := regexp.MustCompile(`\x1b\[\d+A`).Split(text, -1)
	last := all[len(all)-1]
	if n := len(all); n > 1 && strings.Count(last, "\n") < strings.Count(all[n-2], "\n") { // it is being drawn
		last = all[n-2]
	}
	return strings.ReplaceAll(last, "\x1b[2K", "")
}

func sortedLines(text string) string {
	return strings.Join(slices.Sorted(strings.SplitSeq(text, "\n")), "\n")
}

func checkNames(text string) []string {
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^(?:ok|no|MISSING) +(\S+)`).FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}
