// Package known is the table of launchers: the one place that names them all.
//
// A launcher is a folder beside this one and a line in the table; to delete it, delete both. Who wants to detect who
// has started an agent, to write a job file or to bring a job to a launcher asks here. The room owns the table and
// the order in which launchers are looked for: one that starts others comes last.
package known
