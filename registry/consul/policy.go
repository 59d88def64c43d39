package consul

import (
	"fmt"
	"strings"

	"github.com/muster-agent/muster/registry"
)

// Policy is the Consul ACL policy, in HCL, of the agents and users of one app. Sessions are made on the nodes of the
// Consul agents that muster asks, or on the app's SessionNode alone.
func Policy(app string, nodes []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# what muster needs in Consul for the app %s, and no other\n", app)
	rule := func(kind, name, policy string) { fmt.Fprintf(&b, "%s %q {\n  policy = %q\n}\n", kind, name, policy) }
	rule("key_prefix", keysOf(app).base, "write")
	rule("service_prefix", registry.Label(app)+"-", "write")
	rule("node_prefix", "", "read")
	for _, node := range nodes {
		rule("session", node, "write")
	}
	if len(nodes) == 0 {
		rule("session_prefix", "", "write")
	}
	return b.String()
}

// TokenRemedy is what would do about a registry that forbids something to the agents or the users of an app: the rules
// of Policy in words. Without an app it is said of any.
func TokenRemedy(app string) string {
	label := registry.Label(app)
	if app == "" {
		app, label = "APP", "APP"
	}
	return fmt.Sprintf("give CONSUL_HTTP_TOKEN a token with the rules that muster acl %s prints: to write "+
		"key_prefix %q, service_prefix %q and sessions, and to read nodes", app, keysOf(app).base, label+"-")
}
