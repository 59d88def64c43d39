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
	names   string // the first is the option's own, the others mean the same
	values  string // the words that follow; a last one with … takes all words up to the next option
	Meaning string
	ignored string // why the option is accepted and has no effect
}

// Name is the option's own name.
func (o Option) Name() string { return o.all()[0] }

func (o Option) all() []string { return strings.Split(o.names, ", ") }

// options are all of them. The names, and how many words each takes, are those of Slider 0.92's
// org.apache.slider.common.params.
func options() []Option {
	return slices.Concat(definitionOptions(), askOptions(), runOptions(), ignoredOptions())
}

// definitionOptions say what the app is.
func definitionOptions() []Option {
	return []Option{
		{"--appdef", "APP", "the app package: a folder, an archive, a file:, http: or https: URL, or catalog:NAME", ""},
		{"--template", "FILE", "appConfig in place of the package's", ""},
		{"--resources", "FILE", "resources in place of the package's", ""},
		{"--metainfo", "FILE", "metainfo in place of the package's; alone, it is the whole package", ""},
		{"--metainfojson", "JSON", "the same as text", ""},
		{"--component, --comp, --role", "COMPONENT COUNT", "how many of it; repeatable; flex takes +N and -N too", ""},
		{"--option, -O", "KEY VALUE", "a setting of the whole app, or the value of ${KEY}; repeatable", ""},
		{"--compopt, --co, --roleopt", "COMPONENT KEY VALUE", "a setting of one component; repeatable", ""},
		{"--resopt, -ro", "KEY VALUE", "a resource of all components; repeatable", ""},
		{"--rescompopt, --rco", "COMPONENT KEY VALUE", "a resource of one component; repeatable", ""},
		{"--set", "[COMPONENT:]KEY=VALUE", "any of the four above, as muster run takes it; repeatable", ""},
		{"--zkhosts", "HOSTS", "the value of ${ZK_HOST}", ""},
		{"--zkpath", "PATH", "the value of ${DEFAULT_ZK_PATH}", ""},
		{"--addon", "NAME PACKAGE", "an add-on package, whose INSTALL runs behind the app's own; repeatable", ""},
	}
}

// askOptions say what is asked of an app, and how long to wait.
func askOptions() []Option {
	return []Option{
		{
			"--wait", "SECONDS",
			"longest wait (create, start: until all is installed; stop: until the end); 0 does not wait", "",
		},
		{"--force", "", "stop: kill at once; destroy: really, after a stop if the app runs", ""},
		{"--explain", "", "flex: only print what would stop, start and restart", ""},
		{"--message", "TEXT", "stop: the reason, which the verdict names", ""},
		{"--live", "", "only apps that run", ""},
		{"--state", "STATE", "only apps in this state: " + strings.Join(states(), ", "), ""},
		{"--containers", "NAME…", "list: the instances of each app too", ""},
		{"--components", "COMPONENT…", "list --containers: only of these components", ""},
		{
			"--out, -o, --dest", "FILE",
			"write to this file and not to stdout; create, start: the description of the app", "",
		},
		{"--name", "NAME", "registry: the app", ""},
		{"--list", "", "registry: the apps that have exports", ""},
		{"--listexp", "", "registry: the export groups", ""},
		{"--getexp", "GROUP", "registry: one export group", ""},
		{"--listconf", "", "registry: the configurations that are published", ""},
		{"--getconf", "NAME", "registry: one configuration", ""},
		{"--group", "GROUP", "exports: one export group", ""},
		{
			"--format", "FORMAT",
			"registry: of a configuration, xml, json or properties (default: xml); exports are json", "",
		},
	}
}

// clientOptions are those of client, some of which mean something else to other verbs.
func clientOptions() []Option {
	return []Option{
		{"--install", "", "client: install it", ""},
		{"--package", "APP", "client: the package, as for --appdef; without it, that of the app --name", ""},
		{"--name", "NAME", "client: the app that it is for; without a script the client gets its configurations", ""},
		{"--dest", "DIR", "client: a new or an empty folder, into which it is installed", ""},
		{"--config", "FILE", "client: settings over those of " + clientDefaults, ""},
	}
}

// runOptions are muster's own: how the app is run.
func runOptions() []Option {
	return []Option{
		{"--registry", "ADDRESS", registry.AddressForms + " (default: one of its own)", ""},
		{"--state-dir", "DIR", "folder of this host's state, as in muster run", ""},
		{"--engine", "ENGINE", "how the processes are confined: auto, container, cgroup or process", ""},
		{"--require-limits", "", "end with 77 rather than run where a limit is not enforced", ""},
		{"--policy", "FILE", "what this host's operator permits", ""},
		{"--userns", "IDS", "ids of a root agent's processes: private or host", ""},
		{"--host", "ADDRESS", "address of this machine in the exports", ""},
		{"--ports", "A-B", "range to take ports from", ""},
		{"--env", "NAME[=VALUE]", "for the processes; repeatable", ""},
	}
}

// ignoredOptions are accepted and have no effect.
func ignoredOptions() []Option {
	return []Option{
		{"--filesystem, --fs", "URI", "the cluster's file system", "the app is not on YARN"},
		{"--basepath", "PATH", "Slider's folder in it, where the hosts get what they need", "the app is not on YARN"},
		{"--appconf", "PATH", "configuration in HDFS", "no HDFS is needed"},
		{"--image", "PATH", "an archive of the application", "the package brings its files"},
		{"--apphome", "PATH", "an application that is installed", "the package brings its files"},
		{"--provider", "NAME", "Slider's provider", "there is one only"},
		{"--package", "URI", "an installed package", "--appdef names the package"},
		{"--manager, --m, --rm", "HOST:PORT", "YARN's resource manager", "the app is not on YARN"},
		{"--queue", "QUEUE", "YARN's queue", "the app is not on YARN"},
		{"--token-file", "FILE", "file on the hosts with Consul's token", "the app is not on YARN"},
		{"-D", "KEY=VALUE", "Hadoop's configuration", "there is no Hadoop"},
		{"-S", "KEY=VALUE", "Java's system properties", "there is no Java"},
		{"--user", "USER", "whose application", "apps are those of who asks"},
		{"--servicetype", "TYPE", "type of the service", "there is one only"},
		{"--internal", "", "the internal registry", "there is one registry"},
		{"--version", "VERSION", "version of the containers", "all are of one version"},
		{"--verbose", "", "more words", "all is said"},
		{"--debug", "", "debug output", "muster logs NAME has what agents did"},
	}
}

// ofYarn are those of them that act where the app is on YARN.
var ofYarn = []string{"--filesystem", "--basepath", "--manager", "--queue", "--token-file"}

// What the verbs take, by name.
var (
	everywhere = []string{"--state-dir", "--filesystem", "--basepath", "-D", "-S", "--manager", "--debug"}
	building   = []string{
		"--appdef", "--template", "--resources", "--metainfo", "--metainfojson",
		"--component", "--option", "--compopt", "--resopt", "--rescompopt", "--set", "--zkhosts", "--zkpath", "--addon",
		"--appconf", "--image", "--apphome", "--provider", "--package", "--queue",
	}
	running = []string{
		"--registry", "--engine", "--require-limits", "--policy", "--userns", "--host", "--ports", "--env",
		"--token-file",
	}
	launching = []string{"--wait", "--out"}
	stopping  = []string{"--wait", "--force", "--message"}
	listing   = []string{"--live", "--state", "--containers", "--components", "--version", "--verbose"}
	existing  = []string{"--live", "--state", "--out"}
	flexing   = []string{"--component", "--wait", "--explain"}
	exporting = []string{"--group", "--out"}
)

// optionsNamed picks options, in the order of the whole list.
func optionsNamed(names []string) []Option {
	return slices.DeleteFunc(options(), func(o Option) bool { return !slices.Contains(names, o.Name()) })
}

// Help is the list of options, one on a line.
func Help(options []Option) string {
	var b strings.Builder
	for _, o := range options {
		meaning := o.Meaning
		switch {
		case slices.Contains(ofYarn, o.Name()):
			meaning += " (ignored of an app that is not on YARN)"
		case o.ignored != "":
			meaning += " (ignored: " + o.ignored + ")"
		}
		fmt.Fprintf(&b, "  %-40s %s\n", strings.TrimSpace(o.names+" "+o.values), meaning)
	}
	return b.String()
}

// AllOptions is the help of all options of all verbs.
func AllOptions() string { return Help(slices.Concat(options(), clientOptions())) }

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
		return nil, nil, exit.Usagef("slider %s: %s: got %s behind it, want %s", verb, o.Name(), got, o.values)
	}
	for _, w := range words[:n] {
		if slices.ContainsFunc(options, func(other Option) bool { return other.Name() == w }) {
			return nil, nil, exit.Usagef("slider %s: %s: got %s behind it, want %s", verb, o.Name(), w, o.values)
		}
	}
	return words[:n], words[n:], nil
}

// findOption finds the option that a word names; inside is a value in the same word: --name=VALUE, -Dk=v.
func findOption(verb string, options []Option, word string) (o Option, inside []string, err error) {
	name, value, hasValue := strings.Cut(word, "=")
	var known []string
	for _, o := range options {
		for _, n := range o.all() {
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
