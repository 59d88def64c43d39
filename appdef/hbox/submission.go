package hbox

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// Submission is what a command line of hbox-submit asks for.
type Submission struct {
	Verb     string // VerbRun, VerbHelp, VerbVersion; the other fields are set for VerbRun only
	App      appdef.App
	Launcher string // --launcher, as written; empty: here

	// Files, Archives and Jars are the client's files, in the order of the command line.
	Files, Archives, Jars []Local
	// HadoopConf is the folder of the Hadoop configuration that --cluster picks; empty: it picks none.
	HadoopConf string
	// Carried are options that only YARN or HBox's own services use, by the option's long name or the conf's.
	Carried map[string]string
	unsaid  []string // of Carried: what the administrator's file says
}

// Parse reads the words behind `hbox-submit`, with the administrator's defaults. It always returns all problems,
// sorted; without one of severity error the App can be planned. Every problem is one of the command line, or of the
// administrator's file.
func Parse(args []string, site Site) (Submission, appdef.Problems) {
	l := readWords(args)
	s := Submission{Verb: l.verb, Launcher: l.launcher}
	if l.verb != VerbRun {
		return s, nil
	}
	l.defaults(site)
	s.HadoopConf = l.cluster()
	j := job{line: l, draft: appdef.NewDraft("hbox", l.name(), place("--app-name"))}
	j.read()
	s.App, l.found = j.app()
	s.Files, s.Archives, s.Jars = j.locals("files"), j.locals("archiveFiles"), j.locals("jars")
	s.Files, s.Archives = append(s.Files, j.locals("cacheFile")...), append(s.Archives, j.locals("cacheArchive")...)
	maps.DeleteFunc(j.carried, func(name, _ string) bool { return slices.Contains(j.handed, name) })
	s.Carried, s.unsaid = j.carried, j.unsaid
	found := l.found.Sort()
	for i := range found {
		found[i].Usage = !ofSite(appdef.Place{Line: found[i].Line})
	}
	s.App.Warnings = found.Warnings()
	return s, found
}

// name is --app-name. HBox numbers jobs without a name; muster does not, because two readings of one command line must
// agree.
func (l *line) name() string {
	if v, ok := l.options["app-name"]; ok && strings.TrimSpace(v.Text) != "" {
		return v.Text
	}
	return defaultName
}

const defaultName = "hbox"

// CarriedNames are the keys of Carried that the user wrote, sorted, as the command line writes them.
func (s Submission) CarriedNames() []string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(s.Carried)), func(name string) bool {
		return slices.Contains(s.unsaid, name)
	})
	for i, name := range names {
		if _, option := optionNamed(name); option {
			names[i] = "--" + name
		}
	}
	return names
}

// PickConf is the folder of the Hadoop configuration: given, or the one that --cluster names; empty: neither says one.
func (s Submission) PickConf(given string) (string, error) {
	if s.HadoopConf != "" && given != "" && given != s.HadoopConf {
		return "", fmt.Errorf("hbox-submit: --hadoop-conf %s beside --cluster, which names %s: want one of the two",
			given, s.HadoopConf)
	}
	return cmp.Or(given, s.HadoopConf), nil
}
