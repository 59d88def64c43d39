package exit

import (
	"errors"
	"fmt"

	"github.com/muster-agent/muster/appdef"
)

// Error is a failure with the exit code that it ends with.
type Error struct {
	Code int
	Err  error
}

func (e Error) Error() string { return e.Err.Error() }

func (e Error) Unwrap() error { return e.Err }

// With gives an error its exit code; nil stays nil.
func With(code int, err error) error {
	if err == nil {
		return nil
	}
	return Error{code, err}
}

// Default gives an error a code unless it has one.
func Default(code int, err error) error {
	var has Error
	var silent Silent
	if errors.As(err, &has) || errors.As(err, &silent) {
		return err
	}
	return With(code, err)
}

// Usagef is a command line that is wrong.
func Usagef(format string, args ...any) error {
	return Error{Usage, fmt.Errorf(format, args...)}
}

// Silent ends with a code and no text: everything has been said.
type Silent struct{ Code int }

func (e Silent) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// CodeOf is the exit code that an error ends with: 0 for none, 65 for problems of a definition, 1 where nothing else is
// said.
func CodeOf(err error) int {
	if err == nil {
		return 0
	}
	if silent, ok := errors.AsType[Silent](err); ok {
		return silent.Code
	}
	if coded, ok := errors.AsType[Error](err); ok {
		return coded.Code
	}
	if _, ok := errors.AsType[appdef.Problems](err); ok {
		return Definition
	}
	return 1
}
