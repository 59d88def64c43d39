// Package frameworks tells a process of its cluster in the words of its framework: from a plan and a roster to
// variables and files.
//
// There is one file per framework, registered in one table; deleting a framework deletes its file and its line. The
// room is pure and owns nothing. It promises the same environment for the same plan and roster, which golden files
// hold. shim/process calls it at each start, shim/dryrun for `muster plan --roster`.
package frameworks
