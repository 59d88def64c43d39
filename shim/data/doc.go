// Package data holds the rules by which an instance gets its inputs and leaves its outputs.
//
// The pure part assigns files to workers: a function of the order of the files, the number of workers and the worker's
// number. The other part leaves a folder or a stream in a store: an output is there completely or not at all, and gets
// its name only after the job's verdict, however often agents are killed on the way. The room owns the folder
// `_temporary/<run>` of an output in its store. shim/data/manager calls it; shim/data/transfer copies the files,
// shim/data/stream reads records, and shim/data/formats runs users' formats of Hadoop.
package data
