// Package convert writes an App in the format of another system: the documents of a Slider package, a job file of PAI,
// or a command of hbox-submit.
//
// An App and the files of its package come in; texts go out, and a list of everything that the other system cannot
// express. The formats belong to the dialects: this room chooses one and collects the result.
//
// It is pure: the caller writes the files. Caller: `muster convert`.
package convert
