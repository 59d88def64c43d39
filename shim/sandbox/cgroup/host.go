package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Host reads the kernel's files under Root; "" is the machine itself, tests give a folder.
type Host struct{ Root string }

func (h Host) text(path string) (string, error) {
	b, err := os.ReadFile(h.path(path))
	return strings.TrimSpace(string(b)), err
}

// number is 0 when the file is absent or holds no number: max, for one.
func (h Host) number(path string) int64 {
	text, err := h.text(path)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (h Host) exists(path string) bool {
	_, err := os.Lstat(h.path(path))
	return err == nil
}

// writable asks for the rights that the process has now, and sees a read-only mount.
func (h Host) writable(path string) error {
	return unix.Faccessat(unix.AT_FDCWD, h.path(path), unix.W_OK, unix.AT_EACCESS)
}

func (h Host) path(path string) string {
	if h.Root == "" {
		return path
	}
	return filepath.Join(h.Root, path)
}
