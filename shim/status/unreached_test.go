package status

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// An agent that is gone, or silent, is told from one that refuses.
func TestUnreached(t *testing.T) {
	gone := Dial(filepath.Join(t.TempDir(), "gone.sock"))
	defer gone.Close()
	if why := Unreached(gone.Signal(t.Context(), "TERM")); why == nil || why.Error() != "connect: no such file or directory" {
		t.Errorf("gone: got %v", why)
	}
	path := filepath.Join(t.TempDir(), "silent.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	silent := Dial(path)
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if why := Unreached(silent.Signal(ctx, "TERM")); !errors.Is(why, errNotInTime) {
		t.Errorf("silent: got %v", why)
	}
	for _, err := range []error{nil, context.Canceled, net.ErrClosed} {
		if why := Unreached(err); why != nil {
			t.Errorf("%v: got %v", err, why)
		}
	}
}
