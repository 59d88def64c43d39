// Package hbox reads a command line of hbox-submit into an appdef.App, and writes one.
//
// What enters are the words behind `hbox-submit`; what leaves is the App, what the submission asks beside it, and all
// problems at once. The package reads no file and no site configuration: a default is HBox's own.
//
// Facts about the options are those of Qihoo360/hbox (ClientArguments, Client, HboxConfiguration), old names those of
// XLearning 1.4.
//
// line.go, words.go, conf.go and options.go take the command line apart; job.go holds the App that is being made and
// read.go goes through its parts, one file each. cmd/muster calls Parse, and Write for `muster convert --to hbox`.
package hbox
