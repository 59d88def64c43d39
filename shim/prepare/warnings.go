package prepare

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
)

// Warnings say by kind what of the plan will not work although the process can start.
func (c *Container) Warnings(p plan.Plan, in registry.Instance) map[string]string {
	all := map[string]string{"java": c.lacksJava(p), "capabilities": c.vainCaps(), "socket": c.lacksSocket(p, in)}
	maps.DeleteFunc(all, func(_, text string) bool { return text == "" })
	return all
}

// ofTheHost are the capabilities that the kernel grants to the root of the host's own user namespace alone, or to that
// of the network, which each process shares with the host.
var ofTheHost = []string{
	"AUDIT_CONTROL", "AUDIT_READ", "AUDIT_WRITE", "BLOCK_SUSPEND", "BPF", "IPC_LOCK", "LINUX_IMMUTABLE", "MAC_ADMIN",
	"MAC_OVERRIDE", "MKNOD", "NET_ADMIN", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_RAW", "PERFMON", "SYSLOG",
	"SYS_MODULE", "SYS_PACCT", "SYS_RAWIO", "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "WAKE_ALARM",
}

// vainCaps names capabilities of the policy that the process, root of a user namespace, has in vain.
func (c *Container) vainCaps() string {
	if u := c.User(); c.ids == nil || u != nil && u.UID != 0 {
		return ""
	}
	var vain []string
	for _, name := range c.Policy.Capabilities.Add {
		if slices.Contains(ofTheHost, strings.TrimPrefix(name, "CAP_")) {
			vain = append(vain, name)
		}
	}
	if vain == nil {
		return ""
	}
	return fmt.Sprintf("capabilities.add of %s: %s without effect: the process has subordinate ids, and the kernel "+
		`grants this to root of the host alone; give the agent --userns host, or let the operator set "userns": "host"`,
		c.Policy.File, strings.Join(vain, ", "))
}

// lacksSocket says that the process cannot reach its agent's socket: a folder above the state folder is closed to it.
func (c *Container) lacksSocket(p plan.Plan, in registry.Instance) string {
	if p.Root.Kind != plan.RootHost { // a container is shown the socket
		return ""
	}
	socket, owner := c.Socket(in), c.Owner()
	shut := files.As(owner).Shut(filepath.Dir(socket))
	if shut == "" {
		return ""
	}
	return fmt.Sprintf("the process cannot ask its agent ($MUSTER_STATUS_SOCKET, %s): %s is closed to uid %d, which "+
		"it has on this host: give --state-dir a place that others may pass through, or open that folder (chmod o+x)",
		socket, shut, owner.UID)
}
