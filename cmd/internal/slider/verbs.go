package slider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/shim/exit"
)

// Verb is one command of Slider's client.
type Verb struct {
	Use, Short string
	Aliases    []string
	options    []string // beside everywhere
	run        func(context.Context, *call) error
}

// Verbs are all commands. version says which muster this is.
func Verbs(version func() string) []Verb {
	making, starting := slices.Concat(building, running), slices.Concat(running, launching)
	printVersion := func(_ context.Context, c *call) error { return c.printVersion(version()) }
	return []Verb{
		{"create NAME", "Make an app of a package and start it", nil, slices.Concat(making, launching), create},
		{"build NAME", "Make an app, and do not start it", nil, making, create},
		{"start NAME", "Start an app that was stopped, from its checkpoints", []string{"thaw"}, starting, start},
		{"stop NAME", "Stop a running app in grace", []string{"freeze"}, stopping, stop},
		{"update NAME", "Give an app another definition, from its next start on", nil, making, update},
		{"status NAME", "Print the description of an app, in Slider's form", nil, []string{"--out"}, printStatus},
		{"list [NAME]", "List the apps that were created here", nil, listing, list},
		{"exists NAME", "End with 0 if there is such an app, or if it runs", nil, existing, exists},
		{"flex NAME", "Change how many instances an app has, at once if it runs", nil, flexing, flex},
		{"exports NAME", "Print what an app has published, in Slider's form", nil, exporting, exports},
		{"registry", "Print exports, as Slider's client asks for them", nil, registryOptions(), askRegistry},
		{"client [NAME]", "Install what a package has for its users", nil, []string{"--policy"}, installClient},
		{"destroy NAME", "Remove an app for good, with its logs and checkpoints", nil, []string{"--force"}, destroy},
		{"version", "Say which muster this is", nil, nil, printVersion},
	}
}

func registryOptions() []string {
	return append(questions(), "--name", "--format", "--out", "--user", "--servicetype", "--internal", "--verbose")
}

// Name is the word that the verb is typed as.
func (v Verb) Name() string {
	name, _, _ := strings.Cut(v.Use, " ")
	return name
}

// Options are what the verb takes.
func (v Verb) Options() []Option {
	all := optionsNamed(slices.Concat(v.options, everywhere))
	if v.Name() == "client" {
		all = slices.Concat(clientOptions(), all)
	}
	return all
}

// Run runs the verb with the words that follow it, unless they ask for help.
func (v Verb) Run(ctx context.Context, s console.Streams, words []string) (help bool, err error) {
	c, err := parse(s, v.Name(), v.Options(), words)
	if c.help || err != nil {
		return c.help, err
	}
	if c.onYarn() {
		c.ignored = c.withoutEffect()
	}
	c.noteIgnored()
	return false, v.run(ctx, &c)
}

func (c *call) printVersion(version string) error {
	if len(c.args) > 0 {
		return exit.Usagef("slider version: got %s, want nothing", strings.Join(c.args, " "))
	}
	_, err := fmt.Fprintf(c.Out, "muster %s, with Slider 0.92's commands\n", version)
	return exit.With(exit.Internal, err)
}

// Elsewhere are Slider's commands that muster does not have, with what does the same.
func Elsewhere() map[string]string {
	return map[string]string{
		"am-suicide":      "there is no application master; muster signal NAME/COMPONENT-INDEX kill tries a failure",
		"dependency":      "nothing is to be uploaded before the first app",
		"diagnostics":     "muster doctor looks at this host, muster status NAME at an app",
		"echo":            "muster version answers",
		"install-keytab":  "muster help run, --env, gives the processes what they need",
		"install-package": "muster slider create --appdef takes the package itself",
		"kdiag":           "muster doctor looks at this host; there is no Kerberos",
		"keytab":          "there is no Kerberos",
		"kill-container":  "muster signal NAME/COMPONENT-INDEX kill does it",
		"lookup":          "muster slider status NAME says more",
		"nodes":           "muster doctor looks at this host, the only node",
		"package": "muster slider create --appdef takes the package itself; " +
			"muster package makes and ships them",
		"preflight":   "muster validate checks a definition, muster doctor this host",
		"reconfigure": "muster slider update changes the definition for the next start",
		"resolve":     "muster slider registry and exports print what apps publish",
		"resource":    "the package brings its files",
		"tokens":      "there is no Kerberos",
		"upgrade":     "muster slider update, stop and start bring a new definition",
	}
}
