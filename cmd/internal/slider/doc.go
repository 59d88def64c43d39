// Package slider holds the commands of Slider's client as words for muster's own: create is a run that goes on in the
// background, and stop, flex, status and destroy ask the same rooms as the verbs of those names.
//
// An app is an ordinary run in its ordinary work folder, ${XDG_STATE_HOME:-~/.local/state}/muster/NAME, or for root
// /var/lib/muster/apps/NAME. The package
// owns one folder in it, .slider: the record of what the app was created with, and copies of its definition. A folder
// without that record is no app of Slider's commands, and no command changes or removes it. Apps that an earlier muster
// kept in muster/slider/NAME are moved there when they are next asked for and do not run. Of an app that was created
// with a Hadoop configuration the record lies there alone: it is a service of YARN (cluster.go: what is known of it,
// yarn.go: what is done to it). The package starts nothing but `muster run` (by cmd/internal/detach), and `muster
// submit` and the INSTALL of client, which it waits for. It has no goroutine but, of an app on YARN, one that asks YARN
// again while a flex waits, and one that hands a signal on to the submit.
//
// Caller: cmd/muster, which makes a command of each Verb.
package slider
