package hbox

import (
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// readWords takes the words apart. As in HBox, the command begins at the first word that is no option.
func readWords(args []string) *line {
	l := &line{
		verb: VerbRun, options: map[string]appdef.Value{}, lists: map[string][]appdef.Value{},
		confs:   map[string]appdef.Value{},
		carried: map[string]string{},
	}
	if len(args) == 0 {
		l.verb = VerbHelp
	}
	for len(args) > 0 {
		word := args[0]
		name, dashed := cutDashes(word)
		if word == "--" {
			l.command = args[1:]
			break
		}
		if !dashed {
			l.command = args
			break
		}
		args = l.option(word, name, args[1:])
	}
	l.commandWord()
	return l
}

// option reads one option and returns the words behind it.
func (l *line) option(word, name string, rest []string) []string {
	o, ok := optionNamed(name)
	if !ok {
		return l.unknown(word, name, rest)
	}
	if o.bare {
		if l.verb == VerbRun {
			l.verb = o.name
		}
		return rest
	}
	at := place("--" + o.name)
	if len(rest) == 0 {
		l.bad(at, "no value", "a value behind it", "")
		return nil
	}
	v := appdef.Value{Text: rest[0], Place: at}
	l.lookAlike(o, v)
	switch {
	case o.name == "conf":
		l.conf(v)
	case o.name == "launcher":
		l.launcher = v.Text
	case o.repeat:
		l.lists[o.name] = append(l.lists[o.name], v)
	default:
		l.options[o.name] = v
	}
	return rest[1:]
}

// lookAlike warns about a value that looks like another option: HBox accepts it.
func (l *line) lookAlike(o option, v appdef.Value) {
	name, dashed := cutDashes(v.Text)
	if other, ok := optionNamed(name); dashed && ok {
		l.warn(v.Place, appdef.Quote(v.Text), "a value", "--"+other.name+" is taken for the value of --"+o.name)
	}
}

// unknown reports an option that HBox does not have. In HBox the command would begin there.
func (l *line) unknown(word, name string, rest []string) []string {
	before, _, valued := strings.Cut(name, "=")
	o, known := optionNamed(before)
	switch hint := meantOption(before); {
	case valued && known:
		l.bad(place("--"+o.name), appdef.Quote(word), "the value as a word of its own", "--"+o.name+" VALUE")
	case hint != "":
		l.bad(place("command line"), "the unknown option "+appdef.Quote(word), "an option of hbox-submit", hint)
	default:
		l.bad(place("command line"), "the unknown option "+appdef.Quote(word), "an option of hbox-submit",
			"muster's own stand before HBox's; words of the command that begin with a dash, behind --")
	}
	if _, dashed := cutDashes(first(rest)); !valued && len(rest) > 0 && !dashed {
		return rest[1:] // its value
	}
	return rest
}

func first(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

// commandWord reports what a command cannot begin with. One case is a word of blanks: a backslash before a blank at the
// end of a line makes it. The other is a second value behind one --conf: HBox takes the first and silently drops the
// others.
func (l *line) commandWord() {
	word, hint := first(l.command), ""
	switch {
	case len(l.command) == 0:
		return
	case strings.TrimSpace(word) == "":
		hint = "a backslash continues the line only where nothing stands behind it, no blank either"
	case confWord(word):
		hint = "each NAME=VALUE has a --conf of its own before it"
	default:
		return
	}
	l.bad(place("command line"), "the word "+appdef.Quote(word)+", with which the command would begin",
		"an option or a command", hint)
}

// confWord tells whether a word is the NAME=VALUE of a conf. HBox runs no shell, to which it would be a variable.
func confWord(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	name = spelt(name)
	return ok && (strings.HasPrefix(name, "hbox.") || strings.HasPrefix(name, "muster.") || hadoop(name))
}
