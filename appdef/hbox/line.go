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
	sites    []setting                 // muster.X of the administrator's file
	command  []string                  // the words behind the options
	carried  map[string]string
	unsaid   []string // what is carried of the administrator's file
	found    appdef.Problems
}

// setting is one `--conf [COMPONENT:]muster.X=v`.
type setting struct {
	component, key string
	appdef.Value
}

// ofSite tells whether the administrator's file has a value, and no word of the user's.
func ofSite(at appdef.Place) bool { return at.Line > 0 }

func (l *line) bad(at appdef.Place, got, want, hint string) {
	l.found = append(l.found, at.Problem(got, want, hint))
}

// warn warns of what the user wrote. A default of the administrator's that does not fit this job is no mistake.
func (l *line) warn(at appdef.Place, got, want, hint string) {
	if ofSite(at) {
		return
	}
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
