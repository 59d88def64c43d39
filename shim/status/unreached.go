package status

import (
	"context"
	"errors"
	"net"
)

// errNotInTime is an agent's silence.
var errNotInTime = errors.New("no answer in time")

// Unreached is why an agent could not be asked: nobody listens at its address, or nothing came in time. It is nil for
// an agent's own answer.
func Unreached(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		if op.Timeout() {
			return errNotInTime
		}
		return op.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errNotInTime
	}
	return nil
}
