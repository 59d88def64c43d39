package slider

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
)

// Option is an option of Slider's client, or one of muster's beside them. Slider's options take any number of words
// (`--compopt COMPONENT KEY VALUE`), which a flag of cobra cannot.
type Option struct {
	Name    string
	also    []string // other names of the same option
	values  string   // the words that follow; a last one with … takes all words up to the next option
	Meaning string
	ignored string // why the option is accepted and has no effect
}

// options are all of them. The names, and how many words each takes, are those of Slider 0.92's
// org.apache.slider.common.params.
func options() []Option {
	return slices.Concat(definitionOptions(), askOptions(), runOptions(), ignoredOptions())
}

// definitionOptions say what the app is.
func definitionOptions() []Option {
	return []Option{
		{
			Name: "--appdef", values: "APP",
			Meaning: "the app package: a folder, an archive, a file:, http: or https: URL, or catalog:NAME",
		},
		{Name: "--template", values: "FILE", Meaning: "appConfig in place of the package's"},
		{Name: "--resources", values: "FILE", Meaning: "resources in place of the package's"},
		{
			Name: "--metainfo", values: "FILE",
			Meaning: "metainfo in place of the package's; alone, it is the whole package",
		},
		{Name: "--metainfojson", values: "JSON", Meaning: "the same as text"},
		{
			Name: "--component", also: []string{"--comp", "--role"}, values: "COMPONENT COUNT",
			Meaning: "how many of it; repeatable; flex takes +N and -N too",
		},
		{
			Name: "--option", also: []string{"-O"}, values: "KEY VALUE",
			Meaning: "a setting of the whole app; repeatable",
		},
		{
			Name: "--compopt", also: []string{"--co", "--roleopt"}, values: "COMPONENT KEY VALUE",
			Meaning: "a setting of one component; repeatable",
		},
		{
			Name: "--resopt", also: []string{"-ro"}, values: "KEY VALUE",
			Meaning: "a resource of all components; repeatable",
		},
		{
			Name: "--rescompopt", also: []string{"--rco"}, values: "COMPONENT KEY VALUE",
			Meaning: "a resource of one component; repeatable",
		},
		{Name: "--zkhosts", values: "HOSTS", Meaning: "the value of ${ZK_HOST}"},
		{Name: "--zkpath", values: "PATH", Meaning: "the value of ${DEFAULT_ZK_PATH}"},
	}
}

// askOptions say what is asked of an app, and how long to wait.
func askOptions() []Option {
	return []Option{
		{
			Name: "--wait", values: "SECONDS",
			Meaning: "longest wait (create, start: until all is installed; stop: until the end); 0 does not wait",
		},
		{Name: "--force", Meaning: "stop: kill at once; destroy: really, after a stop if the app runs"},
		{Name: "--live", Meaning: "only apps that run"},
		{Name: "--state", values: "STATE", Meaning: "only apps in this state: " + strings.Join(states(), ", ")},
		{Name: "--containers", values: "NAME…", Meaning: "list: the instances of each app too"},
		{Name: "--components", values: "COMPONENT…", Meaning: "list --containers: only of these components"},
		{
			Name: "--out", also: []string{"-o", "--dest"}, values: "FILE",
			Meaning: "write to this file and not to stdout; create, start: the description of the app",
		},
		{Name: "--name", values: "NAME", Meaning: "registry: the app"},
		{Name: "--list", Meaning: "registry: the apps that have exports"},
		{Name: "--listexp", Meaning: "registry: the export groups"},
		{Name: "--getexp", values: "GROUP", Meaning: "registry: one export group"},
		{Name: "--listconf", Meaning: "registry: the configurations that are published"},
		{Name: "--getconf", values: "NAME", Meaning: "registry: one configuration"},
		{Name: "--group", values: "GROUP", Meaning: "exports: one export group"},
		{
			Name: "--format", values: "FORMAT",
			Meaning: "registry: of a configuration, xml, json or properties (default: xml); exports are json",
		},
	}
}

// runOptions are muster's own: how the app is run.
func runOptions() []Option {
	return []Option{
		{Name: "--registry", values: "ADDRESS", Meaning: registry.AddressForms + " (default: one of its own)"},
		{Name: "--state-dir", values: "DIR", Meaning: "folder of this host's state, as in muster run"},
		{
			Name: "--engine", values: "ENGINE",
			Meaning: "how the processes are confined: auto, container, cgroup or process",
		},
		{Name: "--require-limits", Meaning: "end with 77 rather than run where a limit is not enforced"},
		{Name: "--policy", values: "FILE", Meaning: "what this host's operator permits"},
		{Name: "--host", values: "ADDRESS", Meaning: "address of this machine in the exports"},
		{Name: "--ports", values: "A-B", Meaning: "range to take ports from"},
		{Name: "--env", values: "NAME[=VALUE]", Meaning: "for the processes; repeatable"},
	}
}

// ignoredOptions are accepted and have no effect, but for the first two.
func ignoredOptions() []Option {
	return []Option{
		{
			Name: "--addon", values: "NAME PACKAGE",
			Meaning: "an add-on package: read and reported, not run; repeatable",
		},
		{Name: "--message", values: "TEXT", Meaning: "stop: the reason, which the verdict names"},
		{
			Name: "--filesystem", also: []string{"--fs"}, values: "URI",
			Meaning: "the cluster's file system", ignored: "no HDFS is needed",
		},
		{Name: "--basepath", values: "PATH", Meaning: "Slider's folder in it", ignored: "no HDFS is needed"},
		{Name: "--appconf", values: "PATH", Meaning: "configuration in HDFS", ignored: "no HDFS is needed"},
		{
			Name: "--image", values: "PATH",
			Meaning: "an archive of the application", ignored: "the package brings its files",
		},
		{
			Name: "--apphome", values: "PATH",
			Meaning: "an application that is installed", ignored: "the package brings its files",
		},
		{Name: "--provider", values: "NAME", Meaning: "Slider's provider", ignored: "there is one only"},
		{Name: "--package", values: "URI", Meaning: "an installed package", ignored: "--appdef names the package"},
		{
			Name: "--manager", also: []string{"--m", "--rm"}, values: "HOST:PORT",
			Meaning: "YARN's resource manager", ignored: "there is no YARN",
		},
		{Name: "--queue", values: "QUEUE", Meaning: "YARN's queue", ignored: "there is no YARN"},
		{Name: "-D", values: "KEY=VALUE", Meaning: "Hadoop's configuration", ignored: "there is no Hadoop"},
		{Name: "-S", values: "KEY=VALUE", Meaning: "Java's system properties", ignored: "there is no Java"},
		{Name: "--user", values: "USER", Meaning: "whose application", ignored: "apps are those of who asks"},
		{Name: "--servicetype", values: "TYPE", Meaning: "type of the service", ignored: "there is one only"},
		{Name: "--internal", Meaning: "the internal registry", ignored: "there is one registry"},
		{Name: "--version", values: "VERSION", Meaning: "version of the containers", ignored: "all are of one version"},
		{Name: "--verbose", Meaning: "more words", ignored: "all is said"},
		{Name: "--debug", Meaning: "debug output", ignored: "muster logs NAME has what agents did"},
	}
}

// Options that several verbs take.
var (
	everywhere = []string{"--state-dir", "--filesystem", "--basepath", "-D", "-S", "--manager", "--debug"}
	building   = []string{
		"--appdef", "--template", "--resources", "--metainfo", "--metainfojson",
		"--component", "--option", "--compopt", "--resopt", "--rescompopt", "--zkhosts", "--zkpath", "--addon",
		"--appconf", "--image", "--apphome", "--provider", "--package", "--queue",
	}
	running   = []string{"--registry", "--engine", "--require-limits", "--policy", "--host", "--ports", "--env"}
	launching = []string{"--wait", "--out"}
)

// optionsNamed picks options, in the order of the whole list.
func optionsNamed(names []string) []Option {
	return slices.DeleteFunc(options(), func(o Option) bool { return !slices.Contains(names, o.Name) })
}

// Help is the list of options, one on a line.
func Help(options []Option) string {
	var b strings.Builder
	for _, o := range options {
		typed := strings.TrimSpace(strings.Join(append([]string{o.Name}, o.also...), ", ") + " " + o.values)
		meaning := o.Meaning
		if o.ignored != "" {
			meaning += " (ignored: " + o.ignored + ")"
		}
		fmt.Fprintf(&b, "  %-40s %s\n", typed, meaning)
	}
	return b.String()
}

// AllOptions is the help of all options of all verbs.
func AllOptions() string { return Help(options()) }

// words is how many words follow the option; -1: all up to the next option.
func (o Option) words() int {
	if strings.HasSuffix(o.values, "…") {
		return -1
	}
	return len(strings.Fields(o.values))
}

// take takes the words that belong to an option, and returns the rest. They may begin with a dash, but a word that is
// an option itself shows that a value is missing.
func (o Option) take(verb string, inside, words []string, options []Option) (values, rest []string, err error) {
	n := o.words()
	switch {
	case inside != nil:
		return inside, words, nil
	case n < 0:
		n = 0
		for n < len(words) && !strings.HasPrefix(words[n], "-") {
			n++
		}
	case n > len(words):
		got := appdef.Counted(len(words), "word")
		return nil, nil, exit.Usagef("slider %s: %s: got %s behind it, want %s", verb, o.Name, got, o.values)
	}
	for _, w := range words[:n] {
		if slices.ContainsFunc(options, func(other Option) bool { return other.Name == w }) {
			return nil, nil, exit.Usagef("slider %s: %s: got %s behind it, want %s", verb, o.Name, w, o.values)
		}
	}
	return words[:n], words[n:], nil
}

// findOption finds the option that a word names; inside is a value in the same word: --name=VALUE, -Dk=v.
func findOption(verb string, options []Option, word string) (o Option, inside []string, err error) {
	name, value, hasValue := strings.Cut(word, "=")
	var known []string
	for _, o := range options {
		for _, n := range append([]string{o.Name}, o.also...) {
			switch {
			case n == word:
				return o, nil, nil
			case n == name && hasValue && o.words() == 1 && strings.HasPrefix(n, "--"):
				return o, []string{value}, nil
			case (n == "-D" || n == "-S") && strings.HasPrefix(word, n):
				return o, []string{strings.TrimPrefix(word, n)}, nil
			}
			known = append(known, n)
		}
	}
	return o, nil, exit.Usagef("slider %s: unknown option %s%s; muster slider %s --help lists them",
		verb, name, Nearest(name, known), verb)
}

// Nearest is a hint about the known name that is nearest, if one is near.
func Nearest(name string, known []string) string {
	if hint := appdef.DidYouMean(name, known); hint != "" {
		return " (" + hint + ")"
	}
	return ""
}
