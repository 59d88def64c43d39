package fault

import (
	"errors"
	"fmt"
	"time"

	"github.com/muster-agent/muster/registry"
)

// Error is a failure with its class.
type Error struct {
	Class registry.Class
	Err   error
	// Command tells that a command of the package failed: with Code, or by Signal; neither at its time limit. Peak and
	// Limit are bytes of memory, where that ran out.
	Command     bool
	Code        *int
	Signal      int
	Peak, Limit int64
	// Passing tells that another attempt may succeed although nothing is changed: a server did not answer.
	Passing bool
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Is matches any failure of the same class: see Is.
func (e *Error) Is(target error) bool {
	c, ok := target.(ofClass)
	return ok && registry.Class(c) == e.Class
}

type ofClass registry.Class

func (c ofClass) Error() string { return "class " + string(c) }

// of gives an error a class.
func of(class registry.Class, err error) error { return &Error{Class: class, Err: err} }

// Definition is a failure that the definition causes.
func Definition(err error) error { return of(registry.ClassDefinition, err) }

// NotPermitted is what this host does not permit: exit code 77.
func NotPermitted(err error) error { return of(registry.ClassNotPermitted, err) }

// Held is a folder that another agent works in: exit code 75.
func Held(err error) error { return of(registry.ClassHost, err) }

// Data is data that could not be brought or left, for another reason than what the definition says of it.
func Data(err error) error { return of(registry.ClassData, err) }

// GPU is a device that is missing or unfit: the launcher may try another host.
func GPU(err error) error { return of(registry.ClassGPU, err) }

// StageTimeout is that bringing or leaving data took longer than the definition allows.
func StageTimeout(limit time.Duration) error {
	return of(registry.ClassTimeout, fmt.Errorf("not done after %s (muster.stage.timeout)", limit))
}

// Is tells whether an error, or one that it wraps, has the class.
func Is(err error, class registry.Class) bool { return errors.Is(err, ofClass(class)) }

// order is how a class is chosen where an error wraps failures of several: what the definition can mend comes first.
var order = []registry.Class{
	registry.ClassDefinition, registry.ClassNotPermitted, registry.ClassImage, registry.ClassGPU, registry.ClassHost,
	registry.ClassTimeout, registry.ClassOOM, registry.ClassApp, registry.ClassData,
}

// ClassOf is the class of an error; "" where nothing gave it one.
func ClassOf(err error) registry.Class {
	for _, class := range order {
		if Is(err, class) {
			return class
		}
	}
	return ""
}
