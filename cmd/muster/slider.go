package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/slider"
	"github.com/muster-agent/muster/shim/exit"
)

const sliderLong = `Slider's own commands: an app is made of a package, runs in the background under its name, and is
stopped, started and asked for by it. On this machine it is a muster run whose app id is the name: muster ps,
status, logs, stop and signal know it too. With a Hadoop configuration, HADOOP_CONF_DIR with a ResourceManager
in its yarn-site.xml or --manager HOST:PORT, create and build make an app that is a service of YARN, by muster
submit yarn: its registry is a Consul (--registry), its files lie in --basepath.

  muster slider create tf1 --appdef tensorflow.zip --template appConfig.json --resources resources.json
  muster slider status tf1
  muster slider exports tf1 --group worker
  muster slider stop tf1
  muster slider start tf1
  muster slider destroy tf1 --force

All lies in the run's work folder, ${XDG_STATE_HOME:-~/.local/state}/muster/NAME, or for root
/var/lib/muster/apps/NAME. Options that muster does
not support are ignored with a note; muster slider COMMAND --help says which a command takes. Exits with
muster's exit codes (muster help exit-codes): 64 also for an app that is not there, 65 for a bad
definition, 75 where the name is taken or the app runs, 76 when --wait is over, and with 255 where exists
and list NAME say no.

Options:
`

// newSlider is the parent of Slider's commands.
func newSlider(s console.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "slider", Short: "Slider's own commands: create, start, stop, status, exports, destroy",
		Long: sliderLong + slider.AllOptions(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return noSliderCommand(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	for _, v := range slider.Verbs(func() string { return readVersion().Version }) {
		cmd.AddCommand(newSliderVerb(s, v))
	}
	for name, instead := range slider.Elsewhere() {
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
				return noSliderCommand(cmd, args[0])
			}
			return of.Help()
		},
	})
	return cmd
}

func noSliderCommand(cmd *cobra.Command, name string) error {
	var known []string
	for _, c := range cmd.Commands() {
		known = append(known, c.Name())
	}
	return exit.Usagef("slider: no command %q%s; muster slider --help lists them", name, slider.Nearest(name, known))
}

// newSliderVerb wires one command. Cobra reads none of its options, which take any number of words.
func newSliderVerb(s console.Streams, v slider.Verb) *cobra.Command {
	return &cobra.Command{
		Use: v.Use, Short: v.Short, Long: v.Short + ".\n\nOptions:\n" + slider.Help(v.Options()), Aliases: v.Aliases,
		DisableFlagParsing: true, DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			help, err := v.Run(cmd.Context(), s, args)
			if help {
				return cmd.Help()
			}
			return err
		},
		ValidArgsFunction: completeSlider(v.Options()),
	}
}

// completeSlider offers the apps that were created here, and the verb's options.
func completeSlider(options []slider.Option) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if n := len(args); n > 0 && args[n-1] == "--appdef" {
			return completeApp(nil, nil, typed)
		}
		if strings.HasPrefix(typed, "-") {
			var names []string
			for _, o := range options {
				names = append(names, o.Name()+"\t"+o.Meaning)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		}
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		names, err := slider.Names()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
