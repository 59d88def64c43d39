package frameworks

import (
	"fmt"
	"net/netip"
	"path"
	"strings"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// mpi tells Open MPI's mpirun (4.0 and 4.1) of its hosts, by variables that every mpirun in the container reads
// (orte-mca-params, `ompi_info --all`): so the one that a command calls itself starts the same processes.
//
// Its hosts are the instances by name: several on one machine are several nodes. It reaches them through `muster rsh`,
// which asks the instances' agents; no sshd, no user and no address are needed for it. The first is this container.
func mpi(p plan.Plan, r registry.Roster) (env, files map[string]string) {
	env, files = none()
	if p.MPI == nil {
		return env, files
	}
	members := plan.MPIMembers(r)
	i := plan.Place(members, p.Who.Component, p.Who.Index)
	if i < 0 {
		return env, files
	}
	say := func(name, value string) {
		if _, own := p.Process.Env[name]; !own { // the definition knows its network better
			env[name] = value
		}
	}
	say("OMPI_ALLOW_RUN_AS_ROOT", "1") // of the container, if at all
	say("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
	say("OMPI_MCA_orte_keep_fqdn_hostnames", "1") // a component's name may have a dot
	// Containers of one host do not see each other's cores: each would bind its processes to the first.
	say("OMPI_MCA_hwloc_base_binding_policy", "none")
	if p.Root.Kind != plan.RootHost {
		// Reading another process's memory needs what a container does not grant, and is found out too late.
		say("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
	}
	if own := network(members[i]); own != "" {
		say("OMPI_MCA_oob_tcp_if_include", own)
		say("OMPI_MCA_btl_tcp_if_include", own)
	}
	if !p.MPI.Launches {
		return env, files
	}
	files[plan.MPIHostFile] = hostFile(p.MPI.Slots, members)
	say("OMPI_MCA_orte_default_hostfile", path.Join(p.Process.Folder, plan.MPIHostFile))
	say("OMPI_MCA_plm_rsh_agent", path.Join(p.Process.Folder, plan.MPIProgram)+" rsh")
	say("OMPI_MCA_plm_rsh_no_tree_spawn", "1")       // only here is a muster to call
	say("OMPI_MCA_orte_leave_session_attached", "1") // what is started ends with who started it
	return env, files
}

// network is an instance's own address as a network of one, for the interface that has it: peers know no other. Open MPI
// takes IPv4 only there; for a name it finds the interfaces by itself.
func network(row registry.Row) string {
	host := plan.Hosts([]registry.Row{row})[0]
	if a, err := netip.ParseAddr(host); err != nil || !a.Is4() {
		return ""
	}
	return host + "/32"
}

// hostFile has the slots of each instance: mpirun deals the ranks out in this order.
func hostFile(slots map[string]int, members []registry.Row) string {
	var b strings.Builder
	for i, row := range members {
		name := row.Instance.String()
		if i == 0 {
			name = "localhost" // where mpirun runs; its own container needs no remote start
		}
		fmt.Fprintf(&b, "%s slots=%d\n", name, max(1, slots[row.Component]))
	}
	return b.String()
}
