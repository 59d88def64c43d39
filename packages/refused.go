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

// Reason says in one word group why an archive is refused.
type Reason string

// The reasons.
const (
	NotAnArchive Reason = "not an archive"
	WrongName    Reason = "name and content differ"
	WrongDigest  Reason = "wrong digest"
	Torn         Reason = "torn"
	Trailing     Reason = "data after the end"
	Window       Reason = "window too large"
	Encrypted    Reason = "encrypted"
	Method       Reason = "unknown method"

	BadName     Reason = "name that cannot be"
	Absolute    Reason = "absolute path"
	Outside     Reason = "path that leads outside"
	Backslash   Reason = "backslash in a name"
	LongName    Reason = "name too long"
	TooDeep     Reason = "too deep"
	BadKind     Reason = "neither file, folder nor link"
	KindChanged Reason = "kind changed"
	Twice       Reason = "file twice"
	BelowLink   Reason = "entry below a link"
	BadLink     Reason = "link that leads outside"
	BadHardLink Reason = "hard link to no file"

	TooManyFiles Reason = "too many files"
	TooManyBytes Reason = "too many bytes"
	Bomb         Reason = "compression bomb"
	WrongSize    Reason = "wrong size"
)

// RefusedError says which archive and entry are refused, what is there and what would do.
type RefusedError struct {
	Archive string // as the caller named it
	Entry   string // as the archive has it; empty where it is the archive as a whole
	Reason  Reason
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

func refuse(why Reason, got, want string) error {
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
