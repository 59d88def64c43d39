package appdef

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Problem is one fault of a definition: its place, what is there, and what is wanted.
type Problem struct {
	File     string `json:"file"`
	Pointer  string `json:"pointer"` // RFC 6901
	Line     int    `json:"line,omitempty"`
	Got      string `json:"got"`
	Want     string `json:"want"`
	Hint     string `json:"hint,omitempty"`
	Severity string `json:"severity"` // error, warning

	// Usage: the fault is in the command line, not in a file (exit 64 instead of 65).
	Usage bool `json:"-"`
	// Forbidden: this host does not permit it (exit 77).
	Forbidden bool `json:"-"`
	// Kind is set where a caller treats the problem in a way of its own.
	Kind ProblemKind `json:"-"`
}

// ProblemKind is what a caller knows a problem by.
type ProblemKind int

// The kinds of problems; most have none.
const (
	NoInstance  ProblemKind = iota + 1 // nothing of the definition can run yet
	RepeatedKey                        // an object has a key twice: the last counts
)

// As is the problem with a kind.
func (p Problem) As(kind ProblemKind) Problem {
	p.Kind = kind
	return p
}

// The severities of a Problem.
const (
	SeverityError   = "error"
	SeverityWarning = "warning"
)

// String prints `FILE#POINTER: got WHAT, want WHAT; HINT`, on one line; of a place without a pointer its line,
// `FILE:LINE: got …`.
func (p Problem) String() string {
	at := p.File + "#" + p.Pointer
	if p.Pointer == "" && p.Line > 0 {
		at = p.File + ":" + strconv.Itoa(p.Line)
	}
	s := at + ": got " + p.Got + ", want " + p.Want
	if p.Hint != "" {
		s += "; " + p.Hint
	}
	return oneLine(s)
}

// oneLine escapes line breaks: keys and names of a definition may come from a stranger.
func oneLine(s string) string {
	if !strings.ContainsFunc(s, unicode.IsControl) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsControl(r) {
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Problems are all faults found at once; as an error they print one problem per line.
type Problems []Problem

func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Print writes one problem per line, in their order; warnings begin with "warning:".
func (ps Problems) Print(to io.Writer) {
	for _, p := range ps {
		if p.Severity == SeverityWarning {
			fmt.Fprint(to, "warning: ")
		}
		fmt.Fprintln(to, p.String())
	}
}

// Sort orders by file, pointer, line, text, and drops exact repeats.
func (ps Problems) Sort() Problems {
	out := slices.Clone(ps)
	slices.SortFunc(out, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.String(), b.String()))
	})
	return slices.Compact(out)
}

// Errors are those of severity error.
func (ps Problems) Errors() Problems {
	return slices.DeleteFunc(slices.Clone(ps), func(p Problem) bool { return p.Severity != SeverityError })
}

// Warnings are those of severity warning.
func (ps Problems) Warnings() Problems {
	return slices.DeleteFunc(slices.Clone(ps), func(p Problem) bool { return p.Severity != SeverityWarning })
}

// Usage tells whether the command line is at fault rather than a file.
func (ps Problems) Usage() bool {
	return slices.ContainsFunc(ps, func(p Problem) bool { return p.Usage && p.Severity == SeverityError })
}
