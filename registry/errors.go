package registry

import (
	"errors"
)

// Errors that callers distinguish.
var (
	// ErrOvertaken: a newer directive makes the write pointless.
	ErrOvertaken = errors.New("overtaken by a newer directive")
	// ErrSuperseded: another incarnation holds the index.
	ErrSuperseded = errors.New("index is held by another agent")
	// ErrNoGrant: a grant is not there, was used, or is another's.
	ErrNoGrant = errors.New("no such grant")
	// ErrTooManyLogins: an app has as many login keys as it may have, until some are over.
	ErrTooManyLogins = errors.New("too many login keys: wait until some are over, and ask for keys of a shorter time")
	// ErrNoLogin: nobody has permitted a login with that key.
	ErrNoLogin = errors.New("no such key may log in")
	// ErrForbidden: the token lacks the right (403).
	ErrForbidden = errors.New("registry forbids it")
	// ErrMalformed: the registry can never accept the request as it is (400, 413). It is a fault of muster.
	ErrMalformed = errors.New("registry cannot take the request")
	// ErrTooManyConnections: 429, the server's limit of connections per client address.
	ErrTooManyConnections = errors.New("too many connections from this address (429)")
	// ErrUnreachable: no answer.
	ErrUnreachable = errors.New("registry is unreachable")
	// ErrNotYet: a peer has not read that roster yet.
	ErrNotYet = errors.New("the peer has no such roster yet")
	// ErrNoApp: no such app in the registry.
	ErrNoApp = errors.New("no such app")
)
