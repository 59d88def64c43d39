// Package python2 holds what tells Python 2 from Python 3: the table of what Python 3 has no more, with what to write
// instead (removed.json), the names that a script defines itself, which modules it would find beside itself, and what
// runs 2to3.
//
// The table is for Go as well; the rest is a piece of Python (names.py), embedded as text. Programs that read the
// scripts of a package put it in front of their own text, so that they agree. The room owns nothing and runs nothing.
//
// Callers: packages/lint, packages/modernize and packages/slidershell.
package python2
