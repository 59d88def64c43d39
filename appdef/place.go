package appdef

import (
	"strconv"
	"strings"
)

// Place is where something was written.
type Place struct {
	File    string
	Pointer string // RFC 6901
	Line    int    // 1 is the first; 0: unknown
}

// String prints the place as a Problem begins: `FILE#POINTER`.
func (p Place) String() string { return p.File + "#" + p.Pointer }

// Problem is an error at this place.
func (p Place) Problem(got, want, hint string) Problem {
	return Problem{
		File: p.File, Pointer: p.Pointer, Line: p.Line, Got: got, Want: want, Hint: hint,
		Severity: SeverityError,
	}
}

// Warning is a warning at this place.
func (p Place) Warning(got, want, hint string) Problem {
	w := p.Problem(got, want, hint)
	w.Severity = SeverityWarning
	return w
}

// Pointer joins the parts into an RFC 6901 pointer.
func Pointer(parts ...string) string {
	var b strings.Builder
	for _, part := range parts {
		b.WriteByte('/')
		if strings.ContainsAny(part, "~/") {
			part = strings.ReplaceAll(strings.ReplaceAll(part, "~", "~0"), "/", "~1")
		}
		b.WriteString(part)
	}
	return b.String()
}

// place finds where a part of the App was written: the part itself, else the nearest part around it. An App without
// places (no dialect has loaded it) gets its own pointer.
func (a *App) place(parts ...string) Place {
	for n := len(parts); n > 0; n-- {
		if p, ok := a.Places[Pointer(parts[:n]...)]; ok {
			return p
		}
	}
	return Place{File: "app", Pointer: Pointer(parts...)}
}

func (a *App) componentPlace(i int, parts ...string) Place {
	return a.place(append([]string{"components", strconv.Itoa(i)}, parts...)...)
}

// quote prints a value of a definition inside a Problem, shortened where it is long.
func quote(text string) string {
	const most = 120
	if len(text) <= most {
		return strconv.Quote(text)
	}
	cut := most
	for cut > 0 && text[cut]&0xC0 == 0x80 { // not inside a rune
		cut--
	}
	return strconv.Quote(text[:cut]) + " and " + strconv.Itoa(len(text)-cut) + " more bytes"
}

// Quote prints a value of a definition as problems do: quoted, shortened where it is long.
func Quote(text string) string { return quote(text) }
