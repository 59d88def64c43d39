package image

import (
	"errors"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"
)

// Conditions that a caller tells apart. All of them reach it inside an *Error.
var (
	ErrReference    = errors.New("not an image reference")
	ErrNotFound     = errors.New("not found")
	ErrUnauthorized = errors.New("not permitted")
	ErrUnreachable  = errors.New("not reached")
	ErrDigest       = errors.New("content does not match its digest")
	ErrPlatform     = errors.New("no image for this platform")
	ErrRefused      = errors.New("refused") // an image that is not well formed, is hostile, or exceeds a limit
)

// Error says which image could not be had, where it was looked for, why, and what would do.
type Error struct {
	Ref      string // as the user wrote it
	Registry string // host[:port], the folder of a layout, or empty when the reference could not be read
	Hint     string // what would do; may be empty
	Err      error
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "image %s: %v", e.Ref, e.Err)
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// digestError is content that is not what its digest promises.
type digestError struct {
	What      string // manifest, config, layer, layer as a tar
	Want, Got digest.Digest
	// WantSize and GotSize in bytes are set when the sizes differ; the digest was not worked out then.
	WantSize, GotSize int64
}

func (e *digestError) Error() string {
	if e.Got == "" {
		return fmt.Sprintf("%s %s: size: want %d bytes, got %d", e.What, e.Want, e.WantSize, e.GotSize)
	}
	return fmt.Sprintf("%s: digest: want %s, got %s", e.What, e.Want, e.Got)
}

// Is makes it an ErrDigest.
func (e *digestError) Is(target error) bool { return target == ErrDigest }

// platformError is an image that exists, for other machines.
type platformError struct {
	Want string
	Have []string // sorted
}

func (e *platformError) Error() string {
	return fmt.Sprintf("platform: want %s, got %s", e.Want, strings.Join(e.Have, ", "))
}

// Is makes it an ErrPlatform.
func (e *platformError) Is(target error) bool { return target == ErrPlatform }

// refuse is an ErrRefused with its reason.
func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrRefused}, args...)...)
}

// hint is what would do about an error; host is the registry.
func hint(err error, host string) string {
	var plain *plainError
	switch {
	// net/http has no type for it
	case errors.As(err, &plain), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fmt.Sprintf("it speaks plain http: give the registry a certificate, or let the operator add "+
			`"insecure_registries": [%q] beside "version": 1 in this host's policy`, host)
	case errors.Is(err, ErrUnauthorized):
		return fmt.Sprintf("give a login for %s by muster.image.auth or in the docker config file, "+
			"and check the name: "+
			"a registry may answer so when there is no such image", host)
	case errors.Is(err, ErrNotFound):
		return "check the name and the tag"
	case errors.Is(err, ErrUnreachable):
		return "check the registry's name and the network; an image named by digest whose layers are in the cache " +
			"needs neither"
	case errors.Is(err, ErrDigest):
		return "the registry, a proxy or the disk changed it: try again, and tell who runs the registry if it stays so"
	case errors.Is(err, ErrPlatform):
		return "build the image for this platform too"
	case errors.Is(err, ErrReference):
		return "want NAME[:TAG][@DIGEST] or oci:DIR[:TAG]"
	}
	return ""
}
