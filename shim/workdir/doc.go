// Package workdir says whose a work folder is, and who works in it now.
//
// A work folder has one run at a time on a host, and an instance's folder one agent: two would write over each other's
// files and take each other's containers for leftovers. The room owns the locks that say so, until they are released,
// and the names of the files beside an instance's folder: the mark that muster made it, and the records of its data.
// `muster run` (also detached) and `muster slider` ask it before a run, an agent before it lays out its instance, and
// shim/data/manager for the names of the data's records.
package workdir
