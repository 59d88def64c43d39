package exit

import "github.com/muster-agent/muster/appdef"

// OfProblems is nil when no problem is an error; the exit code tells a definition's fault from the
// command line's.
func OfProblems(found appdef.Problems) error {
	bad := found.Errors()
	switch {
	case len(bad) == 0:
		return nil
	case bad.Usage():
		return With(Usage, bad)
	}
	return bad
}
