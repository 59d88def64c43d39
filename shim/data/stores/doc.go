// Package stores opens the stores that a definition names, with the rights of the process that it is for.
//
// A URL of another host goes to its store (HDFS, the web) as the process's user on HDFS; a path of this host goes
// through the door of shim/files, as the process's user and below the roots that its policy admits. The room also knows
// the default store in the work folder: where it lies, whether a plan uses it, and which folders of this host a
// container needs for its data. It owns no files, goroutines or locks. It promises that nothing is opened with more
// rights than the process has. The data manager, the checkpoints and the preparation of the container call it.
package stores
