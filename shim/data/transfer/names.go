package transfer

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// Copy is a file and the name that it gets, below some folder.
type Copy struct {
	From File
	To   string
}

// NameError is two files that would get the same name.
type NameError struct{ Alias, First, Second string }

func (e *NameError) Error() string {
	return fmt.Sprintf("input %s: got %s and %s, which have the same name, want one of each in an input; set "+
		"muster.inputs.rename=true, or read them under two names",
		e.Alias, e.First, e.Second)
}

// Names gives each file of an alias its name: <alias>/<its own name>. Two files of one name are a *NameError.
func Names(alias string, files []File) ([]Copy, error) {
	copies := make([]Copy, 0, len(files))
	seen := map[string]string{}
	for _, f := range files {
		base := path.Base(f.Path)
		if first, twice := seen[base]; twice {
			return nil, &NameError{alias, first, f.Shown()}
		}
		seen[base] = f.Shown()
		copies = append(copies, Copy{f, path.Join(alias, base)})
	}
	return copies, nil
}

// Below gives each file its name below a folder of its store.
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

// Numbered gives each file of an alias a name of its own: <alias>/<millis>_<n>, n from 0 on, as HBox's
// isRenameInputFile does. Millis is the time in milliseconds since 1970.
func Numbered(alias string, files []File, millis int64) []Copy {
	copies := make([]Copy, len(files))
	for i, f := range files {
		copies[i] = Copy{f, path.Join(alias, strconv.FormatInt(millis, 10)+"_"+strconv.Itoa(i))}
	}
	return copies
}
