// Package file is the store of this machine's files: of all of them, or of those below one folder that no link leads
// out of.
//
// It owns no files. It promises that a file is on disk once it is closed, that a pipe is not waited for, and that Below
// stays in its folder whatever links lie there. Set.Open and the room files call it.
package file
