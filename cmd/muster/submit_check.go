package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/muster-agent/muster/packages/fetch"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/files"
)

// storeFlags refuses a store that is none, before anything is put there.
func (f *submitFlags) storeFlags(url string) error {
	scheme, _, _ := strings.Cut(strings.ToLower(f.storeAs), ":")
	if _, known := f.job.filesystem.Hadoop.Fetching(nil).Schemes[scheme]; f.storeAs != "" && !known && !strings.HasPrefix(f.storeAs, "/") {
		return exit.Usagef("submit: --store-as %q: want a URL, or an absolute path on the hosts", f.storeAs)
	}
	if fetch.SchemeOf(url) != "" {
		if url = files.LocalPath(url); url == "" {
			return nil
		}
	}
	// A folder that is not there yet is made; a file that is cannot have folders below it.
	for at := filepath.Clean(url); ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case err == nil && !info.IsDir():
			return exit.Usagef("submit: store %s is a file, want a folder", at)
		case err == nil, at == filepath.Dir(at):
			return nil
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
			return nil // what is wrong with it is told by who opens it
		}
	}
}
