package modernize

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"strings"

	"github.com/muster-agent/muster/packages/python2"
)

// scriptsFolder is the folder, within a package, whose Python files are looked at.
const scriptsFolder = "package/scripts"

var (
	// ErrNoFixers is that the Python asked has no 2to3: the standard library has lost lib2to3 with 3.13.
	ErrNoFixers = errors.New("it has no lib2to3, which Python 3.13 and later lack, and no fissix in its place")
	// ErrFile is that the folder asked about is a file, such as an archive.
	ErrFile = errors.New("it is a file")
	// ErrNoScripts is that the folder holds no package/scripts.
	ErrNoScripts = errors.New("no folder " + scriptsFolder)
	// ErrOnlyLinks is that all scripts are symbolic links: nothing there is the package's own.
	ErrOnlyLinks = errors.New("got links alone, which are left as they are")
	// ErrNoPython is that the Python asked cannot be started.
	ErrNoPython = errors.New("it cannot be started")
)

// Change is what one file needs.
type Change struct {
	Name string // within the package, with /
	Diff string // unified; empty: nothing to do
	Err  error  // the file could not be understood
	Link bool   // a symbolic link, which is left as it is: what it names may belong to another
	mode fs.FileMode
	want []byte
}

//go:embed fix.py
var fixer string

// Changes asks 2to3 of the named python about every *.py below package/scripts of dir, in the order of their names.
// Files with nothing to do are left out. Links are named behind them, and nothing is asked about them.
func Changes(ctx context.Context, python, dir string) ([]Change, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("modernize %s: %w", dir, ErrFile)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("modernize: %w", err)
	}
	defer root.Close()
	files, modes, links, err := read(root)
	if err != nil {
		return nil, fmt.Errorf("modernize %s: %w", dir, err)
	}
	if len(files) == 0 && len(links) > 0 {
		return nil, fmt.Errorf("modernize %s: %w: %s", dir, ErrOnlyLinks, strings.Join(links, ", "))
	}
	if len(files) == 0 {
		return nil, nil
	}
	answers, err := ask(ctx, python, question{Programs: python2.Programs(root.FS()), Files: files})
	if err != nil {
		return nil, fmt.Errorf("modernize %s: %w", dir, err)
	}
	var out []Change
	for i, a := range answers {
		c := Change{Name: files[i].Name, Diff: a.Diff, mode: modes[i], want: a.Source}
		switch {
		case a.Line > 0:
			c.Err = fmt.Errorf("%s:%d: %s", c.Name, a.Line, a.Error)
		case a.Error != "":
			c.Err = fmt.Errorf("%s: %s", c.Name, a.Error)
		}
		if c.Diff != "" || c.Err != nil {
			out = append(out, c)
		}
	}
	for _, name := range links {
		out = append(out, Change{Name: name, Link: true})
	}
	return out, nil
}

// Write makes the changes in dir, each file whole or not at all, with the mode it had.
func Write(dir string, changes []Change) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("modernize: %w", err)
	}
	defer root.Close()
	for _, c := range changes {
		if c.Err != nil || c.Diff == "" {
			continue
		}
		if err := replace(root, c); err != nil {
			return fmt.Errorf("modernize %s: write %s: %w", dir, c.Name, err)
		}
	}
	return nil
}

func replace(root *os.Root, c Change) error {
	next := path.Join(path.Dir(c.Name), ".muster-modernize-"+rand.Text())
	f, err := root.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(c.want)
	err = errors.Join(err, f.Chmod(c.mode), f.Sync(), f.Close())
	if err == nil {
		err = root.Rename(next, c.Name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(next))
	}
	return nil
}

// file is one source on its way to fix.py and back.
type file struct {
	Name   string `json:"name"`
	Source []byte `json:"source"`
	Diff   string `json:"diff,omitempty"`
	Error  string `json:"error,omitempty"`
	Line   int    `json:"line,omitempty"` // of Error; 0: not known
}

// question is what fix.py reads.
type question struct {
	Programs []string `json:"programs"` // folders of scripts that are run as programs
	Files    []file   `json:"files"`
}

func read(root *os.Root) (files []file, modes []fs.FileMode, links []string, err error) {
	if info, err := root.Stat(scriptsFolder); err != nil || !info.IsDir() {
		return nil, nil, nil, ErrNoScripts
	}
	err = fs.WalkDir(root.FS(), scriptsFolder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".py" {
			return err
		}
		if d.Type() == fs.ModeSymlink {
			links = append(links, name)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		source, err := root.ReadFile(name)
		files, modes = append(files, file{Name: name, Source: source}), append(modes, info.Mode().Perm())
		return err
	})
	return files, modes, links, err
}

// ask runs fix.py in isolation (-I): no variable, no user's folder and no file of the current one has a say.
func ask(ctx context.Context, python string, q question) ([]file, error) {
	text, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, python, "-I", "-c", python2.Names+fixer)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(text), &out, &said
	if err := cmd.Run(); err != nil {
		return nil, failure(ctx, python, err, said.String())
	}
	var answers []file
	if err := json.NewDecoder(io.LimitReader(&out, 1<<30)).Decode(&answers); err != nil {
		return nil, fmt.Errorf("%s: answer of 2to3: %w", python, err)
	}
	if len(answers) != len(q.Files) {
		return nil, fmt.Errorf("%s: answer of 2to3: %d files, want %d", python, len(answers), len(q.Files))
	}
	return answers, nil
}

const noFixersCode = 3 // of fix.py

func failure(ctx context.Context, python string, err error, said string) error {
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &exit) && exit.ExitCode() == noFixersCode:
		return fmt.Errorf("%s: %w", python, ErrNoFixers)
	case !errors.As(err, &exit): // its text names python
		return fmt.Errorf("%w: %w", ErrNoPython, err)
	}
	said = strings.TrimSpace(said)
	return fmt.Errorf("%s: %w: %s", python, err, said[strings.LastIndex(said, "\n")+1:])
}

// Remedy says what to do where the Python asked has no 2to3, or cannot be started.
func Remedy(ctx context.Context, python string) string {
	if found := Another(ctx, python); found != "" {
		return "give --python " + found
	}
	return "install Python 3.12 or older, or fissix for a later one (python3 -m venv DIR && DIR/bin/pip install " +
		"fissix), " +
		"and name the interpreter: --python DIR/bin/python"
}

// Another finds an interpreter in PATH, other than the one named, that has the fixers; empty: none.
func Another(ctx context.Context, python string) string {
	for _, name := range []string{"python3", "python3.12", "python3.11", "python3.10", "python3.9", "python3.8"} {
		at, err := exec.LookPath(name)
		if err != nil || name == python || at == python {
			continue
		}
		if exec.CommandContext(ctx, at, "-I", "-W", "ignore", "-c",
			"try: import lib2to3\nexcept ImportError: import fissix").Run() == nil {
			return at
		}
	}
	return ""
}
