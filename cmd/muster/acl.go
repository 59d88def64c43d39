package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/exit"
)

func newACL(s console.Streams) *cobra.Command {
	var nodes []string
	var own bool
	cmd := &cobra.Command{
		Use:   "acl APP",
		Short: "Print the Consul ACL policy that an app needs",
		Args:  exactly("APP"),
		Long: `Prints the rules, in HCL, of a Consul token for one app: with it an agent or a user of the app can do
what muster does, and nothing with the keys of another app, nor with its services unless its name
begins with APP-. A token may end all sessions of a node on which it may make some. --node names the
nodes of the Consul agents that --registry asks; --own-node is for a node muster-APP in Consul's
catalog, which keeps the sessions of APP from the tokens of others (doc/operator.md says how to register
it). Without either the token may make and end sessions on all nodes.`,
		Example: "  muster acl d1 --node consul-1 |\n      consul acl policy create -name muster-d1 -rules -\n" +
			"  muster acl d1 --own-node",
		RunE: func(_ *cobra.Command, args []string) error {
			if !appdef.ValidName(args[0]) {
				return exit.Usagef("acl: %q is no name of an app", args[0])
			}
			if own {
				nodes = append(nodes, consul.SessionNode(args[0]))
			}
			fmt.Fprint(s.Out, consul.Policy(args[0], nodes))
			return nil
		},
	}
	cmd.Flags().StringArrayVar(&nodes, "node", nil,
		"`NODE` of a Consul agent that muster asks; repeatable (default all)")
	cmd.Flags().BoolVar(&own, "own-node", false, "permit sessions on the app's own node")
	return cmd
}
