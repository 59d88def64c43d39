package hadoop

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/hdfs"
)

// DefaultFS is the default one and where that was said; nowhere: it is the folder in the work folder.
type DefaultFS struct{ URI, Origin string }

// Local is its folder on this machine, where somebody has named one.
func (f DefaultFS) Local() string {
	if rest, ok := strings.CutPrefix(f.URI, "file:"); ok && f.Origin != "" {
		return filepath.Clean("/" + strings.TrimLeft(rest, "/"))
	}
	return ""
}

// Into tells a plan's request.
func (f DefaultFS) Into(r *plan.Request) {
	r.DefaultFS = f.URI
	if f.Origin == "" {
		return
	}
	if r.Origins == nil {
		r.Origins = map[string]string{}
	}
	r.Origins["default_fs"] = f.Origin
}

// FindDefaultFS finds the default filesystem: the URI of --default-fs, else Hadoop's own. warning is what is wrong with
// a file of Hadoop's that would have named it.
func FindDefaultFS(named string, login Login) (found DefaultFS, warning, err error) {
	found = DefaultFS{URI: plan.DefaultStore}
	if err := login.Check(); err != nil {
		return found, nil, err
	}
	if named != "" {
		uri, err := filesystemURI(named)
		if err != nil {
			return found, nil, exit.Usagef("--default-fs %q: %w", named, err)
		}
		return DefaultFS{uri, "--default-fs"}, nil, nil
	}
	path := filepath.Join(cmp.Or(login.Conf, hdfs.ConfDir()), "core-site.xml")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return found, nil, nil
	}
	if err != nil {
		return found, fmt.Errorf("default filesystem: %w; name it by --default-fs", err), nil
	}
	uri, err := defaultFSOf(text)
	if uri != "" && err == nil {
		uri, err = filesystemURI(uri)
	}
	if err != nil {
		return found, fmt.Errorf("default filesystem: %s: %w; name it by --default-fs", path, err), nil
	}
	if uri == "" {
		return found, nil, nil
	}
	return DefaultFS{uri, "fs.defaultFS of core-site.xml"}, nil, nil
}

// defaultFSOf reads fs.defaultFS, or its older name, out of a core-site.xml; empty: it has none.
func defaultFSOf(text []byte) (string, error) {
	conf, err := hdfs.ParseConf(text)
	if err != nil {
		return "", err
	}
	uri := conf.DefaultFS()
	if strings.Contains(uri, "${") {
		return "", fmt.Errorf("fs.defaultFS: got %q, want a URI without variables", uri)
	}
	return uri, nil
}

// filesystemURI takes a URI with a scheme, or a folder of this machine.
func filesystemURI(text string) (string, error) {
	uri := strings.TrimRight(text, "/")
	switch scheme := store.SchemeOf(text); {
	case strings.HasPrefix(text, "/"):
		return "file:" + filepath.Clean(text), nil
	case scheme == "file:":
		rest := text[len(scheme):]
		if after, ok := strings.CutPrefix(rest, "//"); ok {
			host, path, _ := strings.Cut(after, "/")
			if host != "" && host != "localhost" {
				return "", fmt.Errorf("got host %q, want none: file:///PATH", host)
			}
			rest = "/" + path
		}
		if !strings.HasPrefix(rest, "/") {
			return "", errors.New("want a path from / on")
		}
		return "file:" + filepath.Clean(rest), nil
	case scheme == "":
		return "", errors.New("want a URI such as hdfs://HOST:PORT, or a folder from / on")
	}
	return uri, nil
}
