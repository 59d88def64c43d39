package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// StdinPipe makes a pipe for Spec.Stdin: theirs is the end for the process, who alone must hold it for a write to ours to tell
// that it reads no more.
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

// Outlet is what a process writes. It ends when nobody holds the other end any more, or when Over has been said and what was
// written until then is read.
type Outlet struct{ output }

var _ io.ReadCloser = (*Outlet)(nil)

// Over says that the process and all that it has left are gone. Somebody else may hold the pipe open: nobody waits for
// them.
func (o *Outlet) Over() error {
	if err := o.file.SetReadDeadline(time.Unix(1, 0)); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// Close gives the pipe back; who writes to it from then on fails.
func (o *Outlet) Close() error { return o.file.Close() }
