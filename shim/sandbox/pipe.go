package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// StdinPipe makes a pipe for Spec.Stdin: theirs is the end for the process. The caller closes its copy of theirs after
// the start, so that a write to ours fails once the process reads no more.
func StdinPipe() (theirs, ours *os.File, err error) {
	theirs, ours, err = halfPipe(true)
	if err != nil {
		return nil, nil, fmt.Errorf("make pipe: %w", err)
	}
	return theirs, ours, nil
}

// StdoutPipe makes a pipe for Spec.Stdout.
func StdoutPipe() (theirs *os.File, ours *Outlet, err error) {
	read, write, err := halfPipe(false)
	if err != nil {
		return nil, nil, fmt.Errorf("make pipe: %w", err)
	}
	return write, &Outlet{output{file: read}}, nil
}

// Outlet is what a process writes. It ends when no process holds the other end any more, or after Over, when what was
// written until then is read.
type Outlet struct{ output }

var _ io.ReadCloser = (*Outlet)(nil)

// Over says that the process and all that it has left are dead. Other processes may hold the pipe open; the Outlet does
// not wait for them.
func (o *Outlet) Over() error {
	if err := o.file.SetReadDeadline(time.Unix(1, 0)); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// Close closes the pipe; a later write to it fails.
func (o *Outlet) Close() error { return o.file.Close() }
