package oneline

import (
	"cmp"
	"fmt"
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
// process in a container will find in its place. A program that is not here is an error where it would run here.
func (l *Line) find(here bool) (note string, err error) {
	word := l.Words[0]
	switch {
	case l.Image != "" || strings.Contains(word, "$"):
		return "", nil
	case !strings.Contains(word, "/"):
		if l.OtherPath {
			return "", nil
		}
		note, err = inPath(word, filepath.SplitList(os.Getenv("PATH")), here)
		if l.HostRoot {
			note = ""
		}
		return note, err
	case filepath.IsLocal(word): // a file of the program's own, which is brought
		if here && !executable(filepath.Join(l.sources.base, word)) {
			return "", exit.Usagef("%s: want a program that is there and may be executed", word)
		}
		return "", nil
	}
	path := flags.Absolute(word)
	if !executable(path) {
		if here {
			return "", exit.Usagef("%s: want a program that is there and may be executed", word)
		}
		return "", nil
	}
	l.program.Words = append([]string{path}, l.Words[1:]...)
	if why := unseen(path); why != "" && !l.HostRoot {
		return fmt.Sprintf("warning: %s is not seen by a process in a container: %s; install it where all may read, "+
			"such as /opt, or take an --image", path, why), nil
	}
	return "", nil
}

// inPath looks for a word without a folder.
func inPath(word string, path []string, here bool) (note string, err error) {
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
	why := unseen(found[0])
	if why == "" {
		return "", nil
	}
	at := slices.IndexFunc(found, func(at string) bool { return unseen(at) == "" })
	if at < 0 {
		return fmt.Sprintf("warning: %s is %s, which a process in a container does not see: %s; install it where all "+
			"may read, such as /opt, or take an --image", word, found[0], why), nil
	}
	return fmt.Sprintf("note: %s is %s for a process in a container, not %s: %s", word, found[at], found[0], why), nil
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// unseen is why a process in a container does not find the program at the path, or what it is a link to; "": it does.
// The processes of an agent that is root are another user.
func unseen(path string) string {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err.Error()
	}
	return cmp.Or(unseenAt(path), unseenAt(target))
}

func unseenAt(path string) string {
	for _, dir := range privates {
		if strings.HasPrefix(path, dir+"/") {
			return "it has a " + dir + " of its own"
		}
	}
	if os.Geteuid() != 0 {
		return ""
	}
	for at := path; at != "/"; at = filepath.Dir(at) { // the program, and the folders above it
		if info, err := os.Stat(at); err == nil && info.Mode()&0o001 == 0 {
			return fmt.Sprintf("%s has mode %04o, which is closed to the user that a process has unless a policy says "+
				"otherwise", at, info.Mode().Perm())
		}
	}
	return ""
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
