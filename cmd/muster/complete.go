package main

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/program"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/packages/catalog"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/openapp"
)

// heedEnvironment makes every completion see the flags that come from variables, as the command would.
func heedEnvironment(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		if cmd.ValidArgsFunction != nil {
			cmd.ValidArgsFunction = environed(cmd.ValidArgsFunction)
		}
		heedEnvironment(cmd)
	}
}

// completeValues offers the values of flags that have the same ones in every verb.
func completeValues(root *cobra.Command) {
	values := map[string][]string{
		"engine": {"auto", "container", "cgroup", "process"}, "userns": {"private", "host"},
		"framework": program.Frameworks(),
	}
	for _, cmd := range root.Commands() {
		completeValues(cmd)
		for name, all := range values {
			if _, known := cmd.GetFlagCompletionFunc(name); cmd.Flags().Lookup(name) != nil && !known {
				completeFlag(cmd, name, cobra.FixedCompletions(all, cobra.ShellCompDirectiveNoFileComp))
			}
		}
		if cmd.Flags().Lookup("set") != nil {
			completeFlag(cmd, "set", completeSet)
		}
	}
}

// completeSet offers muster's own keys; what a definition has besides is its own.
func completeSet(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var keys []string
	for _, k := range appdef.Keys() {
		key, named := strings.CutSuffix(k.Name, "*") // a name of one's own follows
		if !named {
			key += "="
		}
		keys = append(keys, key)
	}
	return keys, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func environed(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if err := fromEnvironment(cmd); err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return complete(cmd, args, typed)
	}
}

// completeFlag offers values of a flag.
func completeFlag(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	flags.Must(cmd.RegisterFlagCompletionFunc(flag, environed(complete)))
}

// completeApp offers the catalog; folders and archives are the shell's own to offer.
func completeApp(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, name := range catalog.Names() {
		names = append(names, "catalog:"+name)
	}
	return names, cobra.ShellCompDirectiveDefault
}

// completeAppFlag is completeApp for a flag, whatever arguments there are.
func completeAppFlag(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return completeApp(cmd, nil, typed)
}

// completeComponents offers the components of the app that ref names once the command line is read.
func completeComponents(app *flags.App, ref func(args []string) string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		name := ref(args)
		// nothing is loaded for a tab
		if at, err := openapp.ParseLocation(name); name == "" || err == nil && at.Remote() {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		l, err := app.Load(cmd.Context(), name, io.Discard)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		defer l.Close()
		return l.ComponentNames(), cobra.ShellCompDirectiveNoFileComp
	}
}

// firstOf is the first argument, if there is one.
func firstOf(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// completeKnown offers the apps of this host.
func completeKnown(ask *flags.Ask) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		apps, err := ask.State.Resolve().Apps()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		if units := ask.State.Units(); units != "" {
			of, _ := units.Apps() // what may not be read there has none
			apps = append(apps, of...)
		}
		var names []string
		for _, app := range apps {
			names = append(names, app.App)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeLogs offers the apps of this host and the instances that have logs here.
func completeLogs(ask *flags.Ask) cobra.CompletionFunc {
	known := completeKnown(ask)
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		names, directive := known(cmd, args, typed)
		state := ask.State.Resolve()
		apps, err := state.Apps()
		if err != nil || len(args) > 0 {
			return nil, directive
		}
		for _, app := range apps {
			for instance := range state.Sockets(app.App) {
				names = append(names, app.App+"/"+instance)
			}
			for instance := range state.Places(app.App, app.Run) {
				names = append(names, app.App+"/"+instance)
			}
			for _, instance := range instancesIn(app.LogDir) {
				names = append(names, app.App+"/"+instance)
			}
		}
		slices.Sort(names)
		return slices.Compact(names), directive
	}
}

// instancesIn are the instances that have a folder in a log folder.
func instancesIn(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if _, err := registry.ParseInstance(e.Name()); err == nil && e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// completeSignal offers the instances that live on this host, then signals.
func completeSignal(ask *flags.Ask) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		var names []string
		switch len(args) {
		case 0:
			state := ask.State.Resolve()
			apps, err := state.Apps()
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			for _, app := range apps {
				for instance := range state.Sockets(app.App) {
					names = append(names, app.App+"/"+instance)
				}
			}
			slices.Sort(names)
		case 1:
			names = []string{"TERM", "INT", "KILL", "HUP", "QUIT", "USR1", "USR2", "ABRT", "STOP", "CONT"}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
