// Package shellwords writes words as a text of which a shell makes the same words again, and in which no part of muster
// fills anything in. appdef/hbox and appdef/program write commands by it.
package shellwords
