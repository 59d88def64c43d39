package oneline

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/program"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/wording"
	"github.com/muster-agent/muster/shim/workdir"
)

// mostBytes is how much a package of a line may have: its files are copied for every instance.
const mostBytes = 200_000_000

// scripts are the endings of words of a command that name a program's file.
var scripts = []string{".py", ".sh"}

// sources are the files of this machine that a line's program is made of.
type sources struct {
	base    string   // the folder that their names are below
	files   []string // their names, sorted
	script  string   // the first that the command names; "": none
	imports []string // of all that are Python
	missing string   // a script that the command names and that is not below base; "": none
	outside string   // a script that the command names by a path out of base, and that stays there; "": none
	far     []far    // scripts that come along from folders out of base
}

// far is a script out of the base that a container does not see, with the modules of its own. They come to lie beside
// the files of the base.
type far struct {
	sources
	path, why string
}

// gather finds the files that the words name, and the modules of the program's own that those import.
func gather(l *Line) (sources, error) {
	s := sources{base: "."}
	if l.dir != "" {
		if info, err := os.Stat(l.dir); err != nil || !info.IsDir() {
			return s, exit.With(exit.Usage, errors.Join(fmt.Errorf("--dir %s: want a folder", l.dir), err))
		}
		s.base = l.dir
	}
	for i, word := range l.Words {
		name := filepath.Clean(word)
		if !filepath.IsLocal(name) && slices.Contains(scripts, filepath.Ext(name)) {
			if err := s.addOutside(l, i, name); err != nil {
				return s, err
			}
		}
		if strings.HasPrefix(word, "-") || !filepath.IsLocal(name) || i == 0 && !strings.Contains(word, "/") {
			continue
		}
		info, err := os.Stat(filepath.Join(s.base, name))
		if errors.Is(err, fs.ErrNotExist) && s.script+s.missing == "" && slices.Contains(scripts, filepath.Ext(name)) {
			s.missing = name
		}
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if s.script == "" {
			s.script = name
		}
		if err := s.add(name); err != nil {
			return s, err
		}
	}
	for _, file := range l.files {
		if err := s.addNamed(file); err != nil {
			return s, err
		}
	}
	slices.Sort(s.files)
	return s, s.clash(l.dir)
}

// clash refuses a script from elsewhere whose files would lie in the place of others.
func (s *sources) clash(dir string) error {
	whose := map[string]string{}
	for _, name := range s.files {
		whose[name] = s.base
	}
	for _, f := range s.far {
		for _, name := range f.files {
			other, taken := whose[name]
			if _, err := os.Lstat(filepath.Join(s.base, name)); err == nil && dir != "" {
				other, taken = s.base, true
			}
			if taken && other != f.base {
				return exit.Usagef("%s: a process in a container does not see it: %s; it cannot come along beside "+
					"the %s of %s: cd to %s and name it from there", f.path, f.why, name, flags.Absolute(other), f.base)
			}
			whose[name] = f.base
		}
	}
	return nil
}

// addOutside has a script come along that the command names by a path out of the base, where a container does not see
// it: the command names it as it lies in the package.
func (s *sources) addOutside(l *Line, i int, name string) error {
	path := flags.Absolute(name)
	if !filepath.IsAbs(name) {
		path = flags.Absolute(filepath.Join(s.base, name))
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil //nolint:nilerr // it may be there where the command runs
	}
	why := l.unseen(path, readable)
	if why == (cause{}) || l.Image != "" {
		if i > 0 {
			s.outside = cmp.Or(s.outside, name)
		}
		return nil
	}
	more := far{sources{base: filepath.Dir(path)}, path, why.text}
	if err := more.add(filepath.Base(path)); err != nil {
		return err
	}
	l.program.Words[i] = "./" + filepath.Base(path)
	s.script = cmp.Or(s.script, filepath.Base(path))
	s.imports = append(s.imports, more.imports...)
	s.far = append(s.far, more)
	return nil
}

// addNamed adds what --file names: a file or a folder below the current one.
func (s *sources) addNamed(file string) error {
	name := filepath.Clean(file)
	if !filepath.IsLocal(name) {
		return exit.Usagef("--file %s: want a path below %s, by which the command finds it too; cd to a folder "+
			"above it, or give --dir", file, s.base)
	}
	info, err := os.Stat(filepath.Join(s.base, name))
	switch {
	case err != nil:
		return exit.With(exit.Usage, fmt.Errorf("--file %s: %w", file, err))
	case info.IsDir():
		return s.addFolder(name)
	}
	return s.add(name)
}

// add adds a file, and what it imports of the modules beside it or below the base.
func (s *sources) add(name string) error {
	if slices.Contains(s.files, name) {
		return nil
	}
	s.files = append(s.files, name)
	if filepath.Ext(name) != ".py" {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(s.base, name))
	if err != nil {
		return err
	}
	for _, module := range program.Imports(string(text)) {
		own := false
		for _, dir := range []string{filepath.Dir(name), "."} {
			at := filepath.Join(dir, module)
			if own, err = s.addModule(at); err != nil {
				return err
			}
			if own {
				break
			}
		}
		if !own && !slices.Contains(s.imports, module) {
			s.imports = append(s.imports, module)
		}
	}
	return nil
}

// addModule adds a module of the program's own: NAME.py, or a folder with such files.
func (s *sources) addModule(at string) (own bool, err error) {
	if info, err := os.Stat(filepath.Join(s.base, at+".py")); err == nil && info.Mode().IsRegular() {
		return true, s.add(at + ".py")
	}
	if found, err := filepath.Glob(filepath.Join(s.base, at, "*.py")); err != nil || len(found) == 0 {
		return false, nil //nolint:nilerr // a name that is no pattern is no module
	}
	return true, s.addFolder(at)
}

// addFolder adds the files of a folder, but for what tools leave there.
func (s *sources) addFolder(dir string) error {
	return filepath.WalkDir(filepath.Join(s.base, dir), func(at string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && at != filepath.Join(s.base, dir) && leftOut(at, d):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		name, err := filepath.Rel(s.base, at)
		if err != nil {
			return err
		}
		return s.add(name)
	})
}

// leftOut tells what of a folder is no part of a program: caches, repositories, virtual environments, and the work
// folders of runs, whose packages and logs would be brought with each next run.
func leftOut(at string, d fs.DirEntry) bool {
	if slices.Contains([]string{"__pycache__", ".git", ".hg", ".svn", "node_modules", ".ipynb_checkpoints"}, d.Name()) {
		return true
	}
	_, err := os.Lstat(filepath.Join(at, "pyvenv.cfg"))
	return err == nil || workdir.OfRun(at)
}

// name names the app after its program.
func (s *sources) name() string {
	base := filepath.Base(s.script)
	if s.script == "" {
		base = "job"
	}
	return appdef.NameOf(strings.TrimSuffix(base, filepath.Ext(base)), "")
}

// brought says what each instance gets.
func (s *sources) brought(dir string) string {
	const most = 5
	var all []string
	for _, f := range s.far {
		all = append(all, f.path+" as ./"+filepath.Base(f.path))
		for _, name := range f.files[1:] {
			all = append(all, filepath.Join(f.base, name))
		}
	}
	all = append(all, s.files...)
	switch {
	case dir != "" && len(s.far) > 0:
		return "brings: the folder " + dir + ", and " + wording.First(all[:len(all)-len(s.files)], most)
	case dir != "":
		return "brings: the folder " + dir
	case len(all) == 0 && s.outside != "":
		return "brings: nothing; " + s.outside + " stays where it is (cd to its folder and name it from there, " +
			"and it comes along)"
	case len(all) == 0 && s.missing != "":
		return "brings: nothing, for there is no " + s.missing + " here (--file and --dir bring files)"
	case len(all) == 0:
		return "brings: nothing (--file and --dir bring files)"
	}
	return "brings: " + wording.First(all, most) + " (--file and --dir bring others)"
}

// copyTo copies the files, or the folder dir as a whole.
func (s *sources) copyTo(to, dir string) error {
	if dir != "" {
		all := sources{base: s.base}
		if err := all.addFolder("."); err != nil {
			return err
		}
		s.files = all.files
	}
	sum := int64(0)
	for _, one := range append([]far{{sources: *s}}, s.far...) {
		for _, name := range one.files {
			from := filepath.Join(one.base, name)
			info, err := os.Stat(from)
			if err != nil {
				return err
			}
			if sum += info.Size(); sum > mostBytes {
				return exit.Usagef("the program's files are more than %d MB, at %s: name the few that it needs with "+
					"--file, and have it read data by an absolute path", mostBytes/1_000_000, from)
			}
			if err := copyFile(from, filepath.Join(to, name), info.Mode()); err != nil {
				return err
			}
		}
	}
	return nil
}

func copyFile(from, to string, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return packages.CopyFile(from, to, mode)
}
