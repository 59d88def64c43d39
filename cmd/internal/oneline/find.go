package oneline

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/shim/exit"
)

// privates are the folders of which a container has its own.
var privates = []string{"/tmp", "/var/tmp", "/run", "/dev/shm"}

// find looks for the program as this shell would, writes out a path that leaves the current folder, and says what a
// process in a container will find in its place. A program that is not here, or that the process surely does not see,
// is an error where it would run here.
func (l *Line) find(here bool) (note string, err error) {
	word := l.Words[0]
	switch {
	case l.Image != "" || strings.Contains(word, "$"):
		return "", nil
	case !strings.Contains(word, "/"):
		if l.OtherPath {
			return "", nil
		}
		return l.inPath(word, filepath.SplitList(os.Getenv("PATH")), here)
	}
	path := flags.Absolute(word)
	local := filepath.IsLocal(word) // a file of the program's own, which is brought
	if local {
		path = filepath.Join(l.sources.base, word)
	}
	if !executable(path) {
		if here {
			return "", exit.Usagef("%s: want a program that is there and may be executed", word)
		}
		return "", nil
	}
	if local || l.program.Words[0] != word {
		return "", nil
	}
	l.program.Words[0] = path
	return l.notSeen(path, l.unseen(path, runnable), here)
}

// notSeen says that a process does not see its program, for the reason why, if there is one.
func (l *Line) notSeen(program string, why cause, here bool) (note string, err error) {
	if why == (cause{}) {
		return "", nil
	}
	const remedy = "install it where all may read, such as /opt, or take an --image"
	if here && l.Container && why.private {
		return "", exit.Usagef("%s is not seen by a process in a container: %s; %s, or say --engine process", program,
			why.text, remedy)
	}
	return fmt.Sprintf("warning: %s is not seen by a process in a container: %s; %s", program, why.text, remedy), nil
}

// inPath looks for a word without a folder.
func (l *Line) inPath(word string, path []string, here bool) (note string, err error) {
	var found []string
	for _, dir := range path {
		if at := filepath.Join(dir, word); filepath.IsAbs(dir) && executable(at) {
			found = append(found, at)
		}
	}
	if len(found) == 0 {
		if here {
			return "", exit.Usagef("%s: no program of this name in PATH, %s", word, strings.Join(path, ":"))
		}
		return "", nil
	}
	why := l.unseen(found[0], runnable)
	if why == (cause{}) {
		return "", nil
	}
	at := slices.IndexFunc(found, func(at string) bool { return l.unseen(at, runnable) == cause{} })
	if at < 0 {
		return l.notSeen(found[0], why, here)
	}
	return fmt.Sprintf("note: %s is %s for a process in a container, not %s: %s", word, found[at], found[0],
		why.text), nil
}

// unseenFiles warns of files that the command names by a path, and that a process in a container does not see.
func (l *Line) unseenFiles() (notes []string) {
	if l.Image != "" {
		return nil
	}
	for _, word := range l.program.Words[1:] {
		if _, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(word, "-") {
			word = value
		}
		if info, err := os.Stat(word); err != nil || !filepath.IsAbs(word) || !info.Mode().IsRegular() {
			continue
		}
		if why := l.unseen(word, readable); why != (cause{}) {
			notes = append(notes, fmt.Sprintf("warning: %s is not seen by a process in a container: %s; cd to its "+
				"folder and name it from there, which brings it, or keep it where all may read", word, why.text))
		}
	}
	return notes
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// What others must be allowed to do with a file.
const (
	runnable = 0o001
	readable = 0o004
)

// cause is why a process in a container does not see a file; the zero value: it does.
type cause struct {
	text    string
	private bool // the container has another folder in this one's place, whatever a policy says of users
}

// unseen is why a process in a container does not find the file at the path, or what it is a link to, or may not do
// with it what the mode says. The processes of an agent that is root are another user.
func (l *Line) unseen(path string, mode fs.FileMode) cause {
	if l.HostRoot {
		return cause{}
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return cause{text: err.Error()}
	}
	return cmp.Or(l.unseenAt(path, mode), l.unseenAt(target, mode))
}

func (l *Line) unseenAt(path string, mode fs.FileMode) cause {
	below := func(dir string) bool { return strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/") }
	if slices.ContainsFunc(l.Seen, below) {
		return cause{}
	}
	if at := slices.IndexFunc(privates, below); at >= 0 {
		return cause{"it has a " + privates[at] + " of its own", true}
	}
	if os.Geteuid() != 0 {
		return cause{}
	}
	for at := path; at != "/"; at, mode = filepath.Dir(at), runnable { // the file, and the folders above it
		if info, err := os.Stat(at); err == nil && info.Mode()&mode == 0 {
			return cause{text: fmt.Sprintf("%s has mode %04o, which is closed to the user that a process has unless "+
				"a policy says otherwise", at, info.Mode().Perm())}
		}
	}
	return cause{}
}

// interpreters are programs whose first word without a dash is a script, whatever their version.
var interpreters = []string{"python", "bash", "sh"}

// noScript is an error where an interpreter would be started with a script that is not here; the script may be an
// image's own.
func (l *Line) noScript() error {
	missing := l.sources.missing
	interpreter := strings.TrimRight(filepath.Base(l.Words[0]), "0123456789.")
	if missing == "" || l.Image != "" || !slices.Contains(interpreters, interpreter) {
		return nil
	}
	for _, word := range l.Words[1:] {
		switch {
		case word == "-c" || word == "-m": // what follows is no script
			return nil
		case strings.HasPrefix(word, "-"):
			continue
		case filepath.Clean(word) != missing: // of a flag, or a script that is here
			return nil
		}
		return exit.Usagef("%s: no such file in %s: name it by its path from here, or give the --dir that it is in",
			word, flags.Absolute(l.sources.base))
	}
	return nil
}
