// Package hbox reads a command line of hbox-submit into an appdef.App, and writes one.
//
// The words behind `hbox-submit` come in; the App, the submission's other settings and all problems at once go out. It
// is pure: it reads no file and no site configuration, and a default is HBox's own.
//
// Facts about the options are those of Qihoo360/hbox (ClientArguments, Client, HboxConfiguration), old names those of
// XLearning 1.4.
//
// line.go, words.go, conf.go and options.go take the command line apart. job.go holds the App in the making, and
// read.go calls its parts, one file each. `muster hbox-submit` and shim/submit call Parse; appdef/convert calls Write.
package hbox
