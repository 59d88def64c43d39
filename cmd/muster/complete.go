package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/packages/catalog"
)

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

// completeKnown offers the apps of this host.
func completeKnown(ask *askFlags) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		apps, err := ask.state.resolve().Apps()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for _, app := range apps {
			names = append(names, app.App)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeInstances offers the apps of this host and the instances that live here.
func completeInstances(ask *askFlags) cobra.CompletionFunc {
	known := completeKnown(ask)
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		names, directive := known(cmd, args, typed)
		state := ask.state.resolve()
		for _, app := range slices.Clip(names) {
			for instance := range state.Sockets(app) {
				names = append(names, app+"/"+instance)
			}
		}
		return names, directive
	}
}
