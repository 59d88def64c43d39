package store

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
)

// Conditions that a caller tells apart, beside fs.ErrNotExist, fs.ErrPermission, fs.ErrExist and errors.ErrUnsupported.
// All of them reach it inside an *Error.
var (
	ErrScheme      = errors.New("no store for this scheme")
	ErrUnreachable = errors.New("not reached")
	ErrTLS         = errors.New("the server could not prove who it is")
	ErrRedirect    = errors.New("redirect refused")
	ErrDigest      = errors.New("content does not match its digest")
	ErrNotFile     = errors.New("want a file")
	ErrTooLarge    = errors.New("too large")
	ErrNoSpace     = errors.New("no space left")
	ErrQuota       = errors.New("over its quota")
	ErrCorrupt     = errors.New("damaged on its way or where it is kept")
	// ErrWaited is in an ErrUnreachable that has been tried again for as long as makes sense.
	ErrWaited   = errors.New("waited in vain")
	ErrProtocol = errors.New("the server does not keep to http")
)

// Error says what could not be done with which file, why, and what would do.
type Error struct {
	Op   string // fetch, put, open, stat, list, create, make, rename, remove
	URL  string // without passwords and queries
	Hint string // what would do; may be empty
	Err  error
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s %s: %v", e.Op, e.URL, e.Err)
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// DigestError is a file that is not what its digest promises. It has been deleted.
type DigestError struct{ Want, Got string }

func (e *DigestError) Error() string { return fmt.Sprintf("sha256: want %s, got %s", e.Want, e.Got) }

// Is makes it an ErrDigest.
func (e *DigestError) Is(target error) bool { return target == ErrDigest }

// StatusError is an answer of an http server that gives no file.
type StatusError struct {
	Code  int
	After time.Duration // for which it asks to be left alone; 0: it does not say
}

func (e *StatusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("got status %d %s", e.Code, http.StatusText(e.Code)))
}

// Is makes it the condition that it stands for.
func (e *StatusError) Is(target error) bool {
	switch e.Code {
	case http.StatusNotFound, http.StatusGone:
		return target == fs.ErrNotExist
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return target == fs.ErrPermission
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return target == ErrUnreachable
	}
	return e.Code >= http.StatusInternalServerError && target == ErrUnreachable
}

// Explain makes an *Error of an error that is none yet, and gives it its hint.
func Explain(op, url string, err error) error {
	if err == nil {
		return nil
	}
	if inner, ok := errors.AsType[*Error](err); ok {
		return &Error{Op: op, URL: Printable(url), Hint: inner.Hint, Err: inner.Err}
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	return &Error{Op: op, URL: Printable(url), Hint: hint(err), Err: err}
}

// Refused has the refusal of a write name a folder as the definition does, in place of what muster makes in there.
func Refused(folder string, err error) error {
	inner, ok := errors.AsType[*Error](err)
	if !ok || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	out := Error{Op: "write to", URL: Printable(folder), Hint: inner.Hint, Err: inner.Err}
	if disk, ok := errors.AsType[*os.PathError](inner.Err); ok {
		out.Err, out.Hint = disk.Err, "let this user make "+out.URL+" and write to it, or name another folder"
	}
	whose := strings.TrimSuffix(err.Error(), inner.Error())
	return fmt.Errorf("%s%w", whose, &out)
}

// hint is what would do about an error.
func hint(err error) string {
	var status *StatusError
	var disk *os.PathError
	errors.As(err, &status)
	errors.As(err, &disk)
	switch {
	case errors.Is(err, ErrNoSpace) && disk != nil:
		return "free some on the file system of " + disk.Path + ", or name a cache on another by XDG_CACHE_HOME; " +
			"what has come is kept"
	case status != nil && status.Code == http.StatusProxyAuthRequired:
		return "the proxy wants a login: write it into HTTPS_PROXY"
	case status != nil && errors.Is(err, fs.ErrPermission):
		return "ask who runs the server for access, and write the login as https://USER:PASSWORD@HOST/ if it wants one"
	case errors.Is(err, fs.ErrPermission) && disk != nil:
		return "let this user read or write " + disk.Path + ", or name another"
	case errors.Is(err, fs.ErrNotExist):
		return "check the path"
	case errors.Is(err, fs.ErrExist):
		return "remove it, or name another"
	case errors.Is(err, ErrTLS):
		return "check the host's name and this machine's clock; a certificate authority of your own goes into the " +
			"system's certificates, or into a file that SSL_CERT_FILE names"
	case errors.Is(err, ErrRedirect):
		return "write the address that it leads to, if you trust it"
	case errors.Is(err, ErrUnreachable):
		return "check the host's name, the network and HTTPS_PROXY; what has come is kept, and the next try goes on " +
			"from there"
	case errors.Is(err, ErrDigest):
		return "the server, a proxy or the disk changed it, or the digest is of another version: try again, and ask " +
			"who published it if it stays so"
	case errors.Is(err, ErrTooLarge):
		return "check that the URL names what you want"
	}
	return ""
}

// Transient tells whether what went wrong may pass: a connection that was cut, a server that is away for a moment, a
// copy that is damaged where there may be others. A host that nobody knows by its name stays unknown.
func Transient(err error) bool {
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return false
	}
	return (errors.Is(err, ErrUnreachable) || errors.Is(err, ErrCorrupt)) && !errors.Is(err, ErrWaited)
}

// Printable is a URL without what may be secret in it: the password and the values of the query.
func Printable(raw string) string {
	bare, _, query := strings.Cut(raw, "?")
	if u, err := url.Parse(bare); err == nil && u.User != nil {
		bare = u.Redacted()
	} else if before, after, ok := strings.Cut(bare, "@"); err != nil && ok {
		name, _, _ := strings.Cut(before, "//")
		bare = name + "//…@" + after
	}
	if query && schemeForm.MatchString(raw) && !strings.HasPrefix(strings.ToLower(raw), "file:") {
		return bare + "?…"
	}
	if query {
		return raw
	}
	return bare
}
