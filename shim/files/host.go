package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// What follows reads the host's own files with the agent's rights, wherever a path leads.

// ReadHost reads a small regular file. One without an end, or a pipe that nobody fills, must not be the agent's.
func ReadHost(path string, most int64) (string, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer file.Close()
	return readSmall(file, path, most)
}

func readSmall(file *os.File, path string, most int64) (string, error) {
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, fmt.Errorf("%s: %w", path, ErrNotPlain))
	}
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s: longer than %d bytes", path, most)
	}
	return string(text), err
}

// OpenHost opens a file for reading.
func OpenHost(path string) (io.ReadCloser, error) { return os.Open(path) }

// HostFolder is a folder as a tree of files; it is an error when nothing is there.
func HostFolder(dir string) (fs.FS, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	return os.DirFS(dir), nil
}

// IsThere tells whether something is at a path, or may be: what cannot be looked at counts.
func IsThere(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// IsFolder tells whether a folder is at a path.
func IsFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// IsFile tells whether a regular file is at a path.
func IsFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// IsSocket tells whether a socket is at a path.
func IsSocket(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&fs.ModeSocket != 0
}

// IsProgram tells whether a regular file that may be executed is at a path.
func IsProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// HostNames are the names in a folder, sorted; none where it cannot be read.
func HostNames(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// Same tells whether two paths lead to one folder.
func Same(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil || b == "" {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// ID names a folder as the host's kernel knows it: containers that share a network, and so their locks, may each have
// one at the same path. A folder that is not there yet has its path.
func ID(dir string) string {
	if info, err := os.Stat(dir); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
		}
	}
	return Resolve(dir)
}

// Resolve is a path without links, as far as its elements exist.
func Resolve(path string) string {
	path = filepath.Clean(path)
	for at, rest := path, ""; ; {
		if found, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(found, rest)
		}
		if at == "/" || at == "." {
			return path
		}
		at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest)
	}
}

// Within tells whether a path is dir or leads into it, by its text once each .. is taken back.
func Within(path, dir string) bool {
	path = filepath.Clean(path)
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// InContainer tells whether a path is in a folder that each container has of its own.
func InContainer(path string) bool {
	first := firstOf(path)
	return slices.Contains([]string{"proc", "sys", "dev", "run", "tmp"}, first) || Within(path, "/var/tmp")
}

func firstOf(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(filepath.Clean(path), "/"), "/")
	return first
}
