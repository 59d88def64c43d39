package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
)

// sliderOption is an option of Slider's client, or one of muster's that stands beside them. Slider's take any number
// of words (`--compopt COMPONENT KEY VALUE`), which a flag of ours cannot.
type sliderOption struct {
	name    string
	also    []string // other names of the same
	values  string   // the words behind it; a last one with … takes all up to the next option
	meaning string
	idle    string // why it has no meaning here; it is taken all the same
}

// sliderOptions are all of them. The names, and how many words each takes, are those of Slider 0.92's
// org.apache.slider.common.params.
func sliderOptions() []sliderOption {
	return []sliderOption{
		{name: "--appdef", values: "APP", meaning: "the app package: a folder, an archive, a file:, http: or https: URL, or catalog:NAME"},
		{name: "--template", values: "FILE", meaning: "appConfig in place of the package's"},
		{name: "--resources", values: "FILE", meaning: "resources in place of the package's"},
		{name: "--metainfo", values: "FILE", meaning: "metainfo in place of the package's; alone, it is the whole package"},
		{name: "--metainfojson", values: "JSON", meaning: "the same as text"},
		{name: "--component", also: []string{"--comp", "--role"}, values: "COMPONENT COUNT", meaning: "how many of it; repeatable; flex takes +N and -N too"},
		{name: "--option", also: []string{"-O"}, values: "KEY VALUE", meaning: "a setting of the whole app; repeatable"},
		{name: "--compopt", also: []string{"--co", "--roleopt"}, values: "COMPONENT KEY VALUE", meaning: "a setting of one component; repeatable"},
		{name: "--resopt", also: []string{"-ro"}, values: "KEY VALUE", meaning: "a resource of all components; repeatable"},
		{name: "--rescompopt", also: []string{"--rco"}, values: "COMPONENT KEY VALUE", meaning: "a resource of one component; repeatable"},
		{name: "--zkhosts", values: "HOSTS", meaning: "the value of ${ZK_HOST}"},
		{name: "--zkpath", values: "PATH", meaning: "the value of ${DEFAULT_ZK_PATH}"},
		{name: "--wait", values: "SECONDS", meaning: "wait no longer than this (create, start: until all is installed; stop: until the end); 0 does not wait"},
		{name: "--force", meaning: "stop: kill at once; destroy: really, and stop it before if it runs"},
		{name: "--live", meaning: "only what runs"},
		{name: "--state", values: "STATE", meaning: "only what is in that state: " + strings.Join(sliderStates(), ", ")},
		{name: "--containers", values: "NAME…", meaning: "list: the instances of each app too"},
		{name: "--components", values: "COMPONENT…", meaning: "list --containers: only of these components"},
		{name: "--out", also: []string{"-o", "--dest"}, values: "FILE", meaning: "write it there and not to stdout; create, start: the description of the app"},
		{name: "--name", values: "NAME", meaning: "registry: the app"},
		{name: "--list", meaning: "registry: the apps that have exports"},
		{name: "--listexp", meaning: "registry: the export groups"},
		{name: "--getexp", values: "GROUP", meaning: "registry: one export group"},
		{name: "--listconf", meaning: "registry: the configurations that are published"},
		{name: "--getconf", values: "NAME", meaning: "registry: one configuration"},
		{name: "--group", values: "GROUP", meaning: "exports: one export group"},
		{name: "--format", values: "FORMAT", meaning: "registry: of a configuration, xml, json or properties (default: xml); exports are json"},

		{name: "--registry", values: "ADDRESS", meaning: registry.AddressForms + " (default: one of its own)"},
		{name: "--state-dir", values: "DIR", meaning: "folder of this host's state, as in muster run"},
		{name: "--engine", values: "ENGINE", meaning: "how the processes are confined: auto, container, cgroup or process"},
		{name: "--require-limits", meaning: "end with 77 rather than run where a limit is not enforced"},
		{name: "--policy", values: "FILE", meaning: "what this host's operator permits"},
		{name: "--host", values: "ADDRESS", meaning: "address of this machine in the exports"},
		{name: "--ports", values: "A-B", meaning: "range to take ports from"},
		{name: "--env", values: "NAME[=VALUE]", meaning: "for the processes; repeatable"},

		{name: "--addon", values: "NAME PACKAGE", meaning: "an add-on package: it is read and told of, and not run; repeatable"},
		{name: "--message", values: "TEXT", meaning: "stop: why; it stands in the verdict"},
		{name: "--filesystem", also: []string{"--fs"}, values: "URI", meaning: "the cluster's file system", idle: "no HDFS is needed"},
		{name: "--basepath", values: "PATH", meaning: "Slider's folder in it", idle: "no HDFS is needed"},
		{name: "--appconf", values: "PATH", meaning: "configuration in HDFS", idle: "no HDFS is needed"},
		{name: "--image", values: "PATH", meaning: "an archive of the application", idle: "the package brings its files"},
		{name: "--apphome", values: "PATH", meaning: "an application that is installed", idle: "the package brings its files"},
		{name: "--provider", values: "NAME", meaning: "Slider's provider", idle: "there is one only"},
		{name: "--package", values: "URI", meaning: "an installed package", idle: "--appdef names the package"},
		{name: "--manager", also: []string{"--m", "--rm"}, values: "HOST:PORT", meaning: "YARN's resource manager", idle: "there is no YARN"},
		{name: "--queue", values: "QUEUE", meaning: "YARN's queue", idle: "there is no YARN"},
		{name: "-D", values: "KEY=VALUE", meaning: "Hadoop's configuration", idle: "there is no Hadoop"},
		{name: "-S", values: "KEY=VALUE", meaning: "Java's system properties", idle: "there is no Java"},
		{name: "--user", values: "USER", meaning: "whose application", idle: "apps are those of who asks"},
		{name: "--servicetype", values: "TYPE", meaning: "type of the service", idle: "there is one only"},
		{name: "--internal", meaning: "the internal registry", idle: "there is one registry"},
		{name: "--version", values: "VERSION", meaning: "version of the containers", idle: "all are of one version"},
		{name: "--verbose", meaning: "more words", idle: "all is said"},
		{name: "--debug", meaning: "debug output", idle: "muster logs NAME has what agents did"},
	}
}

// What each verb takes beside sliderEverywhere.
var (
	sliderEverywhere = []string{"--state-dir", "--filesystem", "--basepath", "-D", "-S", "--manager", "--debug"}
	sliderBuilding   = []string{
		"--appdef", "--template", "--resources", "--metainfo", "--metainfojson", "--component", "--option", "--compopt", "--resopt", "--rescompopt",
		"--zkhosts", "--zkpath", "--addon", "--appconf", "--image", "--apphome", "--provider", "--package", "--queue",
	}
	sliderRunning   = []string{"--registry", "--engine", "--require-limits", "--policy", "--host", "--ports", "--env"}
	sliderLaunching = []string{"--wait", "--out"}
)

// words is how many words stand behind the option; -1: all up to the next option.
func (o sliderOption) words() int {
	if strings.HasSuffix(o.values, "…") {
		return -1
	}
	return len(strings.Fields(o.values))
}

// head is how the option is typed.
func (o sliderOption) head() string {
	return strings.TrimSpace(strings.Join(append([]string{o.name}, o.also...), ", ") + " " + o.values)
}

// sliderHelp is the list of options, one on a line.
func sliderHelp(options []sliderOption) string {
	var b strings.Builder
	for _, o := range options {
		meaning := o.meaning
		if o.idle != "" {
			meaning += " (taken, without meaning: " + o.idle + ")"
		}
		fmt.Fprintf(&b, "  %-40s %s\n", o.head(), meaning)
	}
	return b.String()
}

// optionsNamed picks options in the order of the whole list.
func optionsNamed(names []string) []sliderOption {
	return slices.DeleteFunc(sliderOptions(), func(o sliderOption) bool { return !slices.Contains(names, o.name) })
}

// sliderWords is a command line of Slider's.
type sliderWords struct {
	verb  string
	args  []string              // what is no option
	given map[string][][]string // by the option's first name: its words, each time it was given
	idle  []sliderOption        // given, but without meaning here
	help  bool
}

// parseSlider reads what stands behind a verb. An option of ours that is not given is taken from its variable, as a
// flag is.
func parseSlider(verb string, options []sliderOption, words []string) (sliderWords, error) {
	p := sliderWords{verb: verb, given: map[string][][]string{}}
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		if !strings.HasPrefix(word, "-") || word == "-" {
			p.args = append(p.args, word)
			continue
		}
		if word == "--help" || word == "-h" {
			p.help = true
			continue
		}
		o, inside, err := findOption(verb, options, word)
		if err != nil {
			return p, err
		}
		var values []string
		if values, words, err = o.take(verb, inside, words, options); err != nil {
			return p, err
		}
		if _, again := p.given[o.name]; !again && o.idle != "" {
			p.idle = append(p.idle, o)
		}
		p.given[o.name] = append(p.given[o.name], values)
	}
	return p, p.fromVariables(options)
}

// findOption finds what a word names; inside is a value that stands in the same word: --name=VALUE, -Dk=v.
func findOption(verb string, options []sliderOption, word string) (o sliderOption, inside []string, err error) {
	name, value, hasValue := strings.Cut(word, "=")
	var known []string
	for _, o := range options {
		for _, n := range append([]string{o.name}, o.also...) {
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
	return o, nil, exit.Usagef("slider %s: unknown option %s%s; muster slider %s --help lists them", verb, name, like(name, known), verb)
}

// like is the hint about the nearest known name, if one is near.
func like(name string, known []string) string {
	if hint := appdef.DidYouMean(name, known); hint != "" {
		return " (" + hint + ")"
	}
	return ""
}

// take takes the words that belong to an option, and gives the rest. They may begin with a dash, but one that is an
// option itself shows that something was left out.
func (o sliderOption) take(verb string, inside, words []string, options []sliderOption) (values, rest []string, err error) {
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
		return nil, nil, exit.Usagef("slider %s: %s: got %s behind it, want %s", verb, o.name, appdef.Counted(len(words), "word"), o.values)
	}
	for _, w := range words[:n] {
		if slices.ContainsFunc(options, func(other sliderOption) bool { return other.name == w }) {
			return nil, nil, exit.Usagef("slider %s: %s: got %s behind it, want %s", verb, o.name, w, o.values)
		}
	}
	return words[:n], words[n:], nil
}

// fromVariables fills options that were not given from MUSTER_AGENT_<OPTION>.
func (p *sliderWords) fromVariables(options []sliderOption) error {
	for _, o := range options {
		name := "MUSTER_AGENT_" + strings.ToUpper(strings.ReplaceAll(strings.TrimLeft(o.name, "-"), "-", "_"))
		value, ok := os.LookupEnv(name)
		if !ok || o.idle != "" || p.has(o.name) {
			continue
		}
		switch o.words() {
		case 1:
			p.given[o.name] = [][]string{{value}}
		case 0:
			on, err := strconv.ParseBool(value)
			if err != nil {
				return exit.Usagef("%s: %w", name, err)
			}
			if on {
				p.given[o.name] = [][]string{nil}
			}
		}
	}
	return nil
}

func (p *sliderWords) has(name string) bool { return len(p.given[name]) > 0 }

// one is the only word behind an option, the last time it was given.
func (p *sliderWords) one(name string) string {
	if all := p.given[name]; len(all) > 0 {
		return all[len(all)-1][0]
	}
	return ""
}

// note says, once, what was given and has no meaning here.
func (p *sliderWords) note(to io.Writer) {
	if len(p.idle) == 0 {
		return
	}
	var said []string
	for _, o := range p.idle {
		said = append(said, o.name+" ("+o.idle+")")
	}
	fmt.Fprintf(to, "note: without meaning here: %s\n", strings.Join(said, ", "))
}

// wait is --wait; given is false when it was not.
func (p *sliderWords) wait() (limit time.Duration, given bool, err error) {
	if !p.has("--wait") {
		return 0, false, nil
	}
	n, err := strconv.Atoi(p.one("--wait"))
	if err != nil || n < 0 {
		return 0, false, exit.Usagef("slider %s: --wait %s: want seconds, 0 or more", p.verb, p.one("--wait"))
	}
	return time.Duration(n) * time.Second, true, nil
}

// name is the one argument: the app.
func (p *sliderWords) name() (string, error) {
	if len(p.args) != 1 {
		return "", exit.Usagef("slider %s: got %s, want the name of one app", p.verb, cmp.Or(strings.Join(p.args, " "), "nothing"))
	}
	return p.args[0], checkSliderName(p.args[0])
}

func checkSliderName(name string) error { return exit.With(exit.Usage, appdef.CheckName("app", name)) }
