package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/shim/exit"
)

// sliderVerb is one command of Slider's client.
type sliderVerb struct {
	use, short string
	also       []string
	options    []string // beside sliderEverywhere
	run        func(context.Context, console.Streams, *sliderWords) error
	hidden     bool
}

func sliderVerbs() []sliderVerb {
	making := slices.Concat(sliderBuilding, sliderRunning)
	return []sliderVerb{
		{use: "create NAME", short: "Make an app of a package and start it", options: slices.Concat(making, sliderLaunching), run: sliderCreate},
		{use: "build NAME", short: "Make an app, and do not start it", options: making, run: sliderCreate},
		{use: "start NAME", also: []string{"thaw"}, short: "Start an app that was stopped, from its checkpoints", options: slices.Concat(sliderRunning, sliderLaunching), run: sliderStart},
		{use: "stop NAME", also: []string{"freeze"}, short: "Stop a running app in grace", options: []string{"--wait", "--force", "--message"}, run: sliderStop},
		{use: "update NAME", short: "Give an app another definition, from its next start on", options: making, run: sliderUpdate},
		{use: "status NAME", short: "Print the description of an app, in Slider's form", options: []string{"--out"}, run: sliderStatus},
		{use: "list [NAME]", short: "List the apps that were created here", options: []string{"--live", "--state", "--containers", "--components", "--version", "--verbose"}, run: sliderList},
		{use: "exists NAME", short: "End with 0 if there is such an app, or if it runs", options: []string{"--live", "--state", "--out"}, run: sliderExists},
		{use: "flex NAME", short: "Change how many instances an app has, at once if it runs", options: []string{"--component", "--wait"}, run: sliderFlex},
		{use: "exports NAME", short: "Print what an app has published, in Slider's form", options: []string{"--group", "--out"}, run: sliderExports},
		{use: "registry", short: "Print exports, as Slider's client asks for them", options: []string{"--name", "--list", "--listexp", "--getexp", "--listconf", "--getconf", "--format", "--out", "--user", "--servicetype", "--internal", "--verbose"}, run: sliderRegistry},
		{use: "destroy NAME", short: "Remove an app for good, with its logs and checkpoints", options: []string{"--force"}, run: sliderDestroy},
		{use: "version", short: "Say which muster this is", run: sliderVersion},
		{use: "background NAME", run: sliderBackground, hidden: true},
	}
}

// sliderElsewhere are Slider's commands that are none here, with what does the same.
func sliderElsewhere() map[string]string {
	return map[string]string{
		"am-suicide":      "there is no application master; muster signal NAME/COMPONENT-INDEX kill tries a failure",
		"client":          "an app has no client to install",
		"dependency":      "nothing is to be uploaded before the first app",
		"diagnostics":     "muster doctor looks at this host, muster status NAME at an app",
		"echo":            "muster version answers",
		"install-keytab":  "muster help run, --env, gives the processes what they need",
		"install-package": "muster slider create --appdef takes the package itself",
		"kdiag":           "muster doctor looks at this host; there is no Kerberos",
		"keytab":          "there is no Kerberos",
		"kill-container":  "muster signal NAME/COMPONENT-INDEX kill does it",
		"lookup":          "there is no YARN; muster status NAME says more",
		"nodes":           "muster doctor looks at this host, the only node",
		"package":         "muster slider create --appdef takes the package itself; muster package makes and ships them",
		"preflight":       "muster validate checks a definition, muster doctor this host",
		"reconfigure":     "muster slider update changes the definition for the next start",
		"resolve":         "muster slider registry and exports print what apps publish",
		"resource":        "the package brings its files",
		"tokens":          "there is no Kerberos",
		"upgrade":         "muster slider update, stop and start bring a new definition",
	}
}

const sliderLong = `Slider's own commands, on this machine: an app is made of a package, runs in the background under its
name, and is stopped, started and asked for by it. It is a muster run whose app id is the name: muster ps,
status, logs, stop and signal know it too.

  muster slider create tf1 --appdef tensorflow.zip --template appConfig.json --resources resources.json
  muster slider status tf1
  muster slider exports tf1 --group worker
  muster slider stop tf1
  muster slider start tf1
  muster slider destroy tf1 --force

All lies in ${XDG_STATE_HOME:-~/.local/state}/muster/slider/NAME. Options that have no meaning here are taken with a
note; muster slider COMMAND --help says which a command takes. Ends with muster's exit codes (muster help exit-codes):
64 also for an app that is not there, 65 for a bad definition, 75 where the name is taken or the app runs, 76 when
--wait is over, and with 255 where exists and list NAME say no.

Options:
`

// newSlider is the parent of Slider's commands.
func newSlider(s console.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "slider", Short: "Slider's own commands: create, start, stop, status, exports, destroy", Long: sliderLong + sliderHelp(sliderOptions()),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return exit.Usagef("slider: no command %q%s; muster slider --help lists them", args[0], like(args[0], verbsOf(cmd)))
			}
			return cmd.Help()
		},
	}
	for _, v := range sliderVerbs() {
		cmd.AddCommand(v.command(s))
	}
	for name, instead := range sliderElsewhere() {
		cmd.AddCommand(&cobra.Command{
			Use: name, Hidden: true, DisableFlagParsing: true,
			RunE: func(*cobra.Command, []string) error {
				return exit.Usagef("slider %s: is none of muster's commands: %s", name, instead)
			},
		})
	}
	cmd.AddCommand(&cobra.Command{
		Use: "help [COMMAND]", Short: "Print what a command takes", Args: atMost("COMMAND"),
		RunE: func(_ *cobra.Command, args []string) error {
			of, _, err := cmd.Find(args)
			if err != nil || len(args) > 0 && of == cmd {
				return exit.Usagef("slider: no command %q%s", args[0], like(args[0], verbsOf(cmd)))
			}
			return of.Help()
		},
	})
	return cmd
}

func verbsOf(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return names
}

// command wires a verb. Its options are read by ourselves: they take any number of words.
func (v sliderVerb) command(s console.Streams) *cobra.Command {
	options := optionsNamed(slices.Concat(v.options, sliderEverywhere))
	name, _, _ := strings.Cut(v.use, " ")
	cmd := &cobra.Command{
		Use: v.use, Short: v.short, Long: v.short + ".\n\nOptions:\n" + sliderHelp(options), Aliases: v.also, Hidden: v.hidden,
		DisableFlagParsing: true, DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := parseSlider(name, options, args)
			if p.help {
				return cmd.Help()
			}
			if err != nil {
				return err
			}
			p.note(s.Err)
			return v.run(cmd.Context(), s, &p)
		},
		ValidArgsFunction: completeSlider(options),
	}
	return cmd
}

// completeSlider offers the apps that were created here, and the verb's options.
func completeSlider(options []sliderOption) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if n := len(args); n > 0 && args[n-1] == "--appdef" {
			return completeApp(nil, nil, typed)
		}
		if strings.HasPrefix(typed, "-") {
			var names []string
			for _, o := range options {
				names = append(names, o.name+"\t"+o.meaning)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		}
		home, err := openSliderHome()
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		names, err := home.names()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func sliderVersion(_ context.Context, s console.Streams, p *sliderWords) error {
	if len(p.args) > 0 {
		return exit.Usagef("slider version: got %s, want nothing", strings.Join(p.args, " "))
	}
	_, err := fmt.Fprintf(s.Out, "muster %s, with Slider 0.92's commands\n", readVersion().Version)
	return exit.With(exit.Internal, err)
}
