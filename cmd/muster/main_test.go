package main

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
)

func TestMessage(t *testing.T) {
	full := &fs.PathError{Op: "write", Path: "w/app.json", Err: syscall.ENOSPC}
	const remedy = "; free some on that file system (df -h), or name a folder on another (--work-dir, --state-dir)"
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"plain", errors.New("no app"), "muster: no app"},
		{"a full disk", full, "muster: write w/app.json: no space left on device" + remedy},
		{"a quota", &fs.PathError{Op: "write", Path: "a", Err: syscall.EDQUOT}, "muster: write a: disk quota exceeded" + remedy},
		{"where it prints to", &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}, "muster: write /dev/stdout: no space left on device"},
		{"with a remedy", fmt.Errorf("%w; buy a disk", full), "muster: write w/app.json: no space left on device; buy a disk"},
	}
	for _, tt := range tests {
		if got := message(tt.err); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
