package hbox

import (
	"github.com/muster-agent/muster/appdef"
)

// line is a command line taken apart.
type line struct {
	verb     string
	launcher string
	options  map[string]appdef.Value   // options that are given once; the last one counts
	lists    map[string][]appdef.Value // repeatable options
	confs    map[string]appdef.Value   // by their right spelling
	ours     []setting                 // --conf muster.X=v
	command  []string                  // the words behind the options
	carried  map[string]string
	found    appdef.Problems
}

// setting is one `--conf [COMPONENT:]muster.X=v`.
type setting struct {
	component, key string
	appdef.Value
}

func (l *line) bad(at appdef.Place, got, want, hint string) {
	l.found = append(l.found, at.Problem(got, want, hint))
}

func (l *line) warn(at appdef.Place, got, want, hint string) {
	l.found = append(l.found, at.Warning(got, want, hint))
}

func place(word string, parts ...string) appdef.Place {
	return appdef.Place{File: word, Pointer: appdef.Pointer(parts...)}
}

// What a command line asks for, in Submission.Verb.
const (
	VerbRun     = "run"
	VerbHelp    = "help"
	VerbVersion = "version"
)
