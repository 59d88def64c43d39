package troubles

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/muster-agent/muster/appdef/shellwords"
	"github.com/muster-agent/muster/registry"
)

// group is what has one subject.
type group struct {
	title string
	rows  []row
}

// row is one symptom with its cause and what mends it.
type row struct {
	says    []string // the words of messages of muster, with … for what varies
	heard   []string // the words of others: the kernel, Consul, Python, a shell
	codes   []int    // the exit codes that it ends with
	class   registry.Class
	because string
	fix     string
}

func (r row) symptoms() []string { return slices.Concat(r.says, r.heard) }

// first is the symptom that a row is known by.
func (r row) first() string {
	if all := r.symptoms(); len(all) > 0 {
		return all[0]
	}
	if r.class != "" {
		return "class " + string(r.class)
	}
	return "exit code " + strconv.Itoa(r.codes[0])
}

// gap stands in a symptom for what differs from message to message.
const gap = "…"

// How surely a row is meant by a text.
const (
	byWords   = 1 + iota // the row has all words of the text, in any order
	byGeneral            // a symptom stands in the text that stands in many messages
	bySymptom
)

// general is how many letters a symptom has at most that stands in many messages.
const general = 8

// in is how surely a row is meant by a text; 0: it is not.
func (r row) in(text string) (sure int) {
	for _, s := range r.symptoms() {
		switch {
		case !pattern(s).MatchString(text):
		case len(strings.TrimSpace(strings.ReplaceAll(s, gap, ""))) > general:
			return bySymptom
		default:
			sure = byGeneral
		}
	}
	if sure > 0 {
		return sure
	}
	has := strings.ToLower(strings.Join(append(r.symptoms(), string(r.class), r.because, r.fix), "\n"))
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		if !strings.Contains(has, word) {
			return 0
		}
	}
	return byWords
}

// pattern is a symptom as a search for whole words in a message; a terminal may have broken its lines.
func pattern(symptom string) *regexp.Regexp {
	pieces := strings.Split(symptom, gap)
	for i, piece := range pieces {
		words := strings.Fields(piece)
		for j, w := range words {
			words[j] = regexp.QuoteMeta(w)
		}
		pieces[i] = strings.Join(words, `\s+`)
	}
	search := strings.Join(pieces, ".*?")
	if begin, _ := utf8.DecodeRuneInString(symptom); unicode.IsLetter(begin) {
		search = `\b` + search
	}
	if end, _ := utf8.DecodeLastRuneInString(symptom); unicode.IsLetter(end) || unicode.IsDigit(end) {
		search += `\b`
	}
	return regexp.MustCompile("(?is)" + search)
}

// find are the groups with those rows that a text means: a message, a few words of one, an exit code, a class. All for
// no text.
func find(text string) []group {
	text = strings.TrimSpace(text)
	if text == "" {
		return catalogue
	}
	is := func(r row) int { return r.in(text) }
	if code, err := strconv.Atoi(strings.TrimPrefix(text, "exit code ")); err == nil {
		is = func(r row) int { return one(slices.Contains(r.codes, code)) }
	} else if isClass(text) {
		is = func(r row) int { return one(string(r.class) == text) }
	}
	best := 0
	for _, g := range catalogue {
		for _, r := range g.rows {
			best = max(best, is(r))
		}
	}
	var found []group
	for _, g := range catalogue {
		var rows []row
		for _, r := range g.rows {
			if n := is(r); n > 0 && n == best {
				rows = append(rows, r)
			}
		}
		if len(rows) > 0 {
			found = append(found, group{g.title, rows})
		}
	}
	return found
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

func isClass(text string) bool {
	return slices.ContainsFunc(catalogue, func(g group) bool {
		return slices.ContainsFunc(g.rows, func(r row) bool { return string(r.class) == text })
	})
}

// Heard is the symptom with a row that stands in the last words of a program: the first of the last line that has one.
// They are words for Help, as a shell takes them; empty: no line has any.
func Heard(words string) string {
	for _, line := range slices.Backward(strings.Split(words, "\n")) {
		first, at := "", len(line)
		for _, g := range catalogue {
			for _, r := range g.rows {
				if r.class == registry.ClassRegistry || r.class == registry.ClassNotPermitted {
					continue // what Consul says to muster
				}
				for _, s := range r.heard {
					place := pattern(s).FindStringIndex(line)
					if len(s) > general && place != nil && place[0] < at {
						first, at = s, place[0]
					}
				}
			}
		}
		if first != "" {
			return shellwords.Text(strings.Fields(first))
		}
	}
	return ""
}
