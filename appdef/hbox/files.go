package hbox

import (
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// localScheme begins the path of a client's file in options that also take other paths.
const localScheme = "file:"

// The prefixes of the keys for files and archives in stores.
const (
	fileKey    = "muster.file."
	archiveKey = "muster.archive."
)

// The options that name files, and those that name archives.
var (
	fileOptions    = [...]string{"files", "jars", "cacheFile"}
	archiveOptions = [...]string{"archiveFiles", "cacheArchive"}
)

// files gives every instance the files in stores; the client's own files come with the package.
func (j *job) files() {
	check := j.confTruth(confFileCheck, true)
	found := false
	for _, kind := range []struct {
		options []string
		key     string
	}{{fileOptions[:], fileKey}, {archiveOptions[:], archiveKey}} {
		seen := map[string]string{}
		for _, option := range kind.options {
			for _, f := range j.named(option) {
				if clients(option, f.Path) {
					continue
				}
				found = true
				if first, twice := seen[f.Alias]; twice && first != f.Path {
					j.bad(place(f.Option),
						appdef.Quote(f.Path)+" with the name "+appdef.Quote(f.Alias)+", which "+first+" has",
						"a name of its own", "PATH#NAME gives one")
					continue
				}
				seen[f.Alias] = f.Path
				j.global(kind.key+f.Alias, f.Path, place(f.Option))
			}
		}
	}
	if found && !check {
		j.global("muster.files.check", "false", j.confs[confFileCheck].Place)
	}
}

// clients tells whether a path in an option is a file of the client. Cached files are in a store unless they are marked
// as the client's; the others are the client's unless they have a scheme.
func clients(option, path string) bool {
	if strings.HasPrefix(path, localScheme) {
		return true
	}
	cached := option == "cacheFile" || option == "cacheArchive"
	return !cached && !strings.Contains(path, "://") && !strings.HasPrefix(path, "hdfs:")
}

// locals are the client's own files of one option.
func (j *job) locals(option string) []Local {
	return slices.DeleteFunc(j.named(option), func(f Local) bool { return !clients(option, f.Path) })
}

// named are the files of one option: PATH or PATH#ALIAS, with commas between them. Without an alias a file has the last
// element of its path as its name.
func (j *job) named(option string) []Local {
	v, ok := j.value(option)
	if !ok {
		return nil
	}
	var all []Local
	for part := range strings.SplitSeq(v.Text, ",") {
		path, alias, _ := strings.Cut(strings.TrimSpace(part), "#")
		if path == "" {
			continue
		}
		alias = strings.TrimRight(strings.TrimPrefix(alias, "./"), "/")
		if alias == "" {
			bare, _, _ := strings.Cut(path, "?")
			bare = strings.TrimRight(bare, "/")
			alias = bare[strings.LastIndexByte(bare, '/')+1:]
		}
		all = append(all, Local{"--" + option, path, alias})
	}
	return all
}

// Local is a file or folder of the client, and its name in the working directory of every process.
type Local struct {
	Option string // the option that named it: --files
	Path   string
	Alias  string
}
