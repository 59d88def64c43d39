// Package python2 holds what tells Python 2 from Python 3: the names of builtins and of methods of dictionaries that
// Python 3 has no more, and the names that a script defines itself.
//
// It is a piece of Python (names.py), embedded as text. Programs that read the scripts of a package put it in front of
// their own text, so that they agree. The room owns nothing and runs nothing.
//
// Callers: packages/lint and packages/modernize.
package python2
