package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
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

func TestLinkedAs(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"hbox-submit": "hbox-submit", "/usr/local/hbox/bin/hbox-submit": "hbox-submit", "bin/xl-submit": "hbox-submit",
		"/opt/slider/bin/slider": "slider", "muster": "", "hbox-submit.sh": "", program: "",
	} {
		if got := linkedAs(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
