package stage

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// Deal is how files are dealt out among workers.
type Deal struct {
	Workers int
	// Chief is how many files worker 0 gets, the first ones, those without a byte not counted; it gets no others. 0: its turn
	// comes as everybody's.
	Chief int
}

// Share are a worker's files: file i is worker i mod Workers', so that each is somebody's, exactly once. With a chief's,
// file i of the rest goes to worker 1 + i mod (workers - 1), i counted from the first of all, as HBox has it. A worker alone
// gets everything.
func (d Deal) Share(files []File, worker int) []File {
	var own []File
	first := d.chiefs(files)
	for i, f := range files {
		if d.of(i, first) == worker {
			own = append(own, f)
		}
	}
	return own
}

// Idle are the workers that are left without a file, in order.
func (d Deal) Idle(files []File) []int {
	busy := make([]bool, max(d.Workers, 0))
	first := d.chiefs(files)
	for i := range files {
		if d.Workers > 0 {
			busy[d.of(i, first)] = true
		}
	}
	var idle []int
	for worker, is := range busy {
		if !is {
			idle = append(idle, worker)
		}
	}
	return idle
}

// nobody is whose a file is where there is no worker.
const nobody = -1

// of is whose file i is, of which the first ones are the chief's.
func (d Deal) of(i, first int) int {
	switch {
	case d.Workers <= 0:
		return nobody
	case d.Chief <= 0 || d.Workers == 1:
		return i % d.Workers
	case i < first:
		return 0
	}
	return 1 + i%(d.Workers-1)
}

// chiefs is how many of the first files are worker 0's by its number.
func (d Deal) chiefs(files []File) int {
	n, counted := 0, 0
	for n < len(files) && counted < d.Chief {
		if files[n].Size != 0 { // of one whose size is not known something is expected
			counted++
		}
		n++
	}
	return n
}

// Copy is a file and the name that it gets, below some folder.
type Copy struct {
	From File
	To   string
}

// NameError is two files that would get one name.
type NameError struct{ Alias, First, Second string }

func (e *NameError) Error() string {
	return fmt.Sprintf("input %s: got %s and %s, which have the same name, want one of each in an input; set muster.inputs.rename=true, or read them under two names",
		e.Alias, e.First, e.Second)
}

// Names gives each file of an alias its place: <alias>/<its own name>. Two of one name are a *NameError.
func Names(alias string, files []File) ([]Copy, error) {
	copies := make([]Copy, 0, len(files))
	seen := map[string]string{}
	for _, f := range files {
		base := path.Base(f.Path)
		if first, twice := seen[base]; twice {
			return nil, &NameError{alias, first, f.shown()}
		}
		seen[base] = f.shown()
		copies = append(copies, Copy{f, path.Join(alias, base)})
	}
	return copies, nil
}

// Below gives each file the name that it has below a folder of its store.
func Below(dir string, files []File) []Copy {
	copies := make([]Copy, len(files))
	for i, f := range files {
		name := strings.TrimPrefix(strings.TrimPrefix(f.Path, strings.TrimRight(dir, "/")), "/")
		if name == "" { // it is the path itself
			name = path.Base(f.Path)
		}
		copies[i] = Copy{f, name}
	}
	return copies
}

// Numbered gives each file of an alias a name of its own: <alias>/<millis>_<n>, n from 0 on, as HBox's isRenameInputFile
// does. Millis is the time in milliseconds since 1970.
func Numbered(alias string, files []File, millis int64) []Copy {
	copies := make([]Copy, len(files))
	for i, f := range files {
		copies[i] = Copy{f, path.Join(alias, strconv.FormatInt(millis, 10)+"_"+strconv.Itoa(i))}
	}
	return copies
}
