package hbox

import (
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// value is the value of an option: its conf wins, as in HBox.
func (l *line) value(name string) (appdef.Value, bool) {
	o, _ := optionNamed(name)
	if v, ok := l.confs[o.conf]; ok && o.conf != "" {
		return v, true
	}
	v, ok := l.options[o.name]
	return v, ok
}

// text is an option's value without blanks around it; empty without the option.
func (l *line) text(name string) string {
	v, _ := l.value(name)
	return strings.TrimSpace(v.Text)
}

// whole is an option's number, at least least.
func (l *line) whole(name string, fallback, least int) int {
	v, ok := l.value(name)
	if !ok {
		return fallback
	}
	return l.number(v, fallback, least)
}

func (l *line) number(v appdef.Value, fallback, least int) int {
	n, err := appdef.ParseInt(strings.TrimSpace(v.Text))
	if err != nil || n < least {
		l.bad(v.Place, appdef.Quote(v.Text), "a whole number, "+strconv.Itoa(least)+" or more", "")
		return fallback
	}
	return n
}

// memory is an option's amount in MB: a whole number, with or without G or M.
func (l *line) memory(name string, fallback int) int {
	v, ok := l.value(name)
	if !ok {
		return fallback
	}
	n, ok := Megabytes(v.Text)
	if !ok {
		l.bad(v.Place, appdef.Quote(v.Text), wantMegabytes, "")
		return fallback
	}
	return n
}

const wantMegabytes = "megabytes as a whole number, or with G or M behind it: 2048, 2g"

// Megabytes reads an amount of memory in the form of HBox's options: MB, or with G or M; ok is false for any other
// text.
func Megabytes(text string) (n int, ok bool) {
	text = strings.TrimSpace(text)
	unit := 1
	if n := len(text); n > 0 {
		switch text[n-1] {
		case 'G', 'g':
			text, unit = text[:n-1], 1024
		case 'M', 'm':
			text = text[:n-1]
		}
	}
	n, err := appdef.ParseInt(text)
	if err != nil || n < 1 || n > mostMemory/unit {
		return 0, false
	}
	return n * unit, true
}

// mostMemory limits a container against typing errors, in MB.
const mostMemory = 1 << 30

// truth is an option's true or false.
func (l *line) truth(name string, fallback bool) bool {
	v, ok := l.value(name)
	if !ok {
		return fallback
	}
	return l.bool(v, fallback)
}

// confTruth is true or false of a conf that has no option.
func (l *line) confTruth(conf string, fallback bool) bool {
	v, ok := l.confs[conf]
	if !ok {
		return fallback
	}
	return l.bool(v, fallback)
}

func (l *line) bool(v appdef.Value, fallback bool) bool {
	switch strings.ToLower(strings.TrimSpace(v.Text)) {
	case "true":
		return true
	case "false":
		return false
	}
	l.bad(v.Place, appdef.Quote(v.Text), "true or false", "")
	return fallback
}

// share is a conf's number, at least 0.
func (l *line) share(v appdef.Value) (float64, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(v.Text), 64)
	if err != nil || !(f >= 0 && f <= 100) {
		l.bad(v.Place, appdef.Quote(v.Text), "a number from 0 to 100, such as 0.5", "")
		return 0, false
	}
	return f, true
}

// milliseconds is a conf's time as the text of a duration; empty for none.
func (l *line) milliseconds(conf string) (string, appdef.Place) {
	v, ok := l.confs[conf]
	if !ok {
		return "", v.Place
	}
	n := l.number(v, 0, 0)
	switch {
	case n == 0:
		return "", v.Place
	case n%1000 == 0:
		return strconv.Itoa(n/1000) + "s", v.Place
	}
	return strconv.Itoa(n) + "ms", v.Place
}

// at is where an option's value stands; without a value, where it would.
func (l *line) at(option string) appdef.Place {
	if v, ok := l.value(option); ok {
		return v.Place
	}
	return place("--" + option)
}
