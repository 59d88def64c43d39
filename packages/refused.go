package packages

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// ErrRefused is an archive that is not taken: it is hostile, damaged, too large, or no archive at all. It reaches the
// caller in a *RefusedError.
var ErrRefused = errors.New("archive refused")

// reason says in one word group why an archive is refused.
type reason string

// The reasons.
const (
	notAnArchive  reason = "not an archive"
	wrongName     reason = "name and content differ"
	wrongDigest   reason = "wrong digest"
	tornArchive   reason = "torn"
	trailingData  reason = "data after the end"
	largeWindow   reason = "window too large"
	encrypted     reason = "encrypted"
	unknownMethod reason = "unknown method"

	badName      reason = "name that cannot be"
	absolutePath reason = "absolute path"
	outsidePath  reason = "path that leads outside"
	backslash    reason = "backslash in a name"
	longName     reason = "name too long"
	tooDeep      reason = "too deep"
	badKind      reason = "neither file, folder nor link"
	changedKind  reason = "kind changed"
	fileTwice    reason = "file twice"
	belowLink    reason = "entry below a link"
	badLink      reason = "link that leads outside"
	badHardLink  reason = "hard link to no file"

	tooManyFiles reason = "too many files"
	tooManyBytes reason = "too many bytes"
	bomb         reason = "compression bomb"
	otherSize    reason = "wrong size"
)

// RefusedError says which archive and entry are refused, what is there and what would do.
type RefusedError struct {
	Archive string // as the caller named it
	Entry   string // as the archive has it; empty where it is the archive as a whole
	Reason  reason
	Got     string // what is there
	Want    string // what would do
}

func (e *RefusedError) Error() string {
	var b strings.Builder
	if e.Archive != "" {
		b.WriteString(e.Archive + ": ")
	}
	if e.Entry != "" {
		fmt.Fprintf(&b, "entry %.200q: ", e.Entry)
	}
	return b.String() + e.Got + ", want " + e.Want
}

// Is makes it an ErrRefused.
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

func refuse(why reason, got, want string) error {
	return &RefusedError{Reason: why, Got: got, Want: want}
}

// at completes a refusal with the entry; other errors get it in front.
func at(entry string, err error) error {
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		if refused.Entry == "" {
			refused.Entry = entry
		}
		return err
	}
	return fmt.Errorf("entry %.200q: %w", entry, err)
}

// in completes a refusal with the archive; other errors get it in front.
func in(archive string, err error) error {
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		if refused.Archive == "" {
			refused.Archive = archive
		}
		return err
	}
	return fmt.Errorf("%s: %w", archive, err)
}

// KindName names a kind of file for a message.
func KindName(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "file"
	case mode.IsDir():
		return "folder"
	case mode&fs.ModeSymlink != 0:
		return "link"
	case mode&fs.ModeNamedPipe != 0:
		return "named pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeDevice != 0:
		return "device"
	}
	return "thing of another kind"
}
