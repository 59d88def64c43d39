package skeleton

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/muster-agent/muster/packages/catalog"
)

//go:embed all:none all:script all:tensorflow
var templates embed.FS

// Plain is the kind that knows no framework.
const Plain = "none"

// placeholder is what the name is written for.
const placeholder = "@NAME@"

// ErrName is wrapped by the error of Write for a name that no package can have.
var ErrName = errors.New("want a-z, 0-9 and -, beginning with a letter, at most 40")

// ErrKind is wrapped by the error of Write for a kind that there is no skeleton for.
var ErrKind = errors.New("no skeleton")

// ErrNotEmpty is wrapped by the error of Write for a folder that has something in it.
var ErrNotEmpty = errors.New("not empty")

// shown are the frameworks of which the catalog has a program to begin with.
func shown() []string {
	return []string{"horovod", "jax", "lightgbm", "mpi", "mxnet", "pytorch", "xgboost"}
}

var validName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)

// Kinds are the skeletons that there are, sorted: `none` runs a command, `script` a class with install, start, status
// and stop, the others a framework's program.
func Kinds() []string {
	entries, err := templates.ReadDir(".")
	if err != nil {
		panic(fmt.Sprintf("skeleton: embedded files have no root: %v", err))
	}
	kinds := shown()
	for _, e := range entries {
		kinds = append(kinds, e.Name())
	}
	slices.Sort(kinds)
	return kinds
}

// Write makes the package called name in dir, which must be empty or not there, and returns the paths of its files
// within. Files that begin with #! may be executed.
func Write(kind, name, dir string) (files []string, err error) {
	if !validName.MatchString(name) {
		return nil, fmt.Errorf("name %q: %w", name, ErrName)
	}
	if !slices.Contains(Kinds(), kind) {
		return nil, fmt.Errorf("%w %q; there are %s", ErrKind, kind, strings.Join(Kinds(), ", "))
	}
	tree, rename, err := source(kind, name)
	if err != nil {
		return nil, err
	}
	switch have, err := os.ReadDir(dir); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case len(have) > 0:
		return nil, fmt.Errorf("folder %s: %w: it has %s", dir, ErrNotEmpty, have[0].Name())
	}
	err = fs.WalkDir(tree, ".", func(from string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(tree, from)
		if err != nil {
			return err
		}
		to := strings.ReplaceAll(from, placeholder, name)
		files = append(files, to)
		return write(filepath.Join(dir, filepath.FromSlash(to)), rename(from, text))
	})
	return files, err
}

// source is what a kind is made of, and how the name gets into a file of it.
func source(kind, name string) (tree fs.FS, rename func(file string, text []byte) []byte, err error) {
	if !slices.Contains(shown(), kind) {
		tree, err = fs.Sub(templates, kind)
		return tree, func(_ string, text []byte) []byte {
			return bytes.ReplaceAll(text, []byte(placeholder), []byte(name))
		}, err
	}
	tree, err = catalog.Open(kind)
	return tree, func(file string, text []byte) []byte { return renamed(kind, name, file, text) }, err
}

// renamed is a file of the catalog's package with the name in place of the package's own: in metainfo the
// application's, in the README the heading and what it says to run.
func renamed(kind, name, file string, text []byte) []byte {
	switch file {
	case "metainfo.json":
		return bytes.Replace(text, []byte(`"name": "`+kind+`"`), []byte(`"name": "`+name+`"`), 1)
	case "README.md":
		text = bytes.Replace(text, []byte("# "+kind+"\n"), []byte("# "+name+"\n"), 1)
		return bytes.ReplaceAll(text, []byte("muster run catalog:"+kind), []byte("muster run ."))
	}
	return text
}

func write(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	mode := fs.FileMode(0o666)
	if bytes.HasPrefix(text, []byte("#!")) {
		mode = 0o777
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
