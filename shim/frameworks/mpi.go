package frameworks

import (
	"fmt"
	"net/netip"
	"path"
	"strings"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// mpi tells Open MPI's mpirun (4.0 and 4.1) its hosts, in variables that every mpirun in the container reads
// (orte-mca-params, `ompi_info --all`): also an mpirun that the command itself calls starts the same processes.
//
// The hosts are the instances by name: several on one machine are several nodes. mpirun reaches them through `muster
// rsh`, which asks the agents of the instances: it needs neither sshd nor an address. The first host is this container.
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
	for name, value := range mpiPaths(p) {
		say(name, value)
	}
	say("OMPI_ALLOW_RUN_AS_ROOT", "1") // root of the container, if at all
	say("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
	say("OMPI_MCA_orte_keep_fqdn_hostnames", "1") // a component's name may have a dot
	// Containers on one host do not see each other's cores: each would bind its processes to the first core.
	say("OMPI_MCA_hwloc_base_binding_policy", "none")
	if p.Root.Kind == plan.RootHost {
		// Daemons of one job on one host would make the same folder in /tmp, and remove each other's.
		say("TMPDIR", path.Join(p.Process.Folder, "app/tmp"))
	} else {
		// Reading another process's memory needs rights that a container does not have, and fails late.
		say("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
	}
	if len(plan.Hosts(members)) < len(members) {
		// A process that waits for a message polls, and would keep the senders from the core.
		say("OMPI_MCA_mpi_yield_when_idle", "1")
		if p.Root.Kind == plan.RootHost && several(p.MPI.Slots) {
			// Shared memory is named by host and rank on a node: nodes of one host would write into each other's.
			say("OMPI_MCA_btl", "^vader")
		}
	}
	if shared, ok := network(members); ok {
		say("OMPI_MCA_oob_tcp_if_include", shared)
		say("OMPI_MCA_btl_tcp_if_include", shared)
	}
	if !p.MPI.Launches {
		say("OMPI_MCA_plm_rsh_agent", "sh") // mpirun's daemon looks for an agent here, and never calls it
		return env, files
	}
	files[plan.MPIHostFile] = hostFile(p.MPI.Slots, members)
	say("OMPI_MCA_orte_default_hostfile", path.Join(p.Process.Folder, plan.MPIHostFile))
	say("OMPI_MCA_plm_rsh_agent", path.Join(p.Process.Folder, plan.Program)+" rsh")
	say("OMPI_MCA_plm_rsh_pass_environ_mca_params", "0") // each instance has its own variables, with its own paths
	say("OMPI_MCA_plm_rsh_no_tree_spawn", "1")           // only this container has a muster to call
	say("OMPI_MCA_orte_leave_session_attached", "1")     // daemons end with the process that started them
	return env, files
}

// mpiPrefix is the variable for an Open MPI that is not in the folder for which it was built.
const mpiPrefix = "OPAL_PREFIX"

// mpiPaths are the folders of programs and libraries of the Open MPI that the definition names.
func mpiPaths(p plan.Plan) map[string]string {
	at := p.Process.Env[mpiPrefix]
	if at == "" {
		return nil
	}
	before := func(name string, dirs ...string) string {
		for i, dir := range dirs {
			dirs[i] = path.Join(at, dir)
		}
		return strings.TrimSuffix(strings.Join(dirs, ":")+":"+p.Process.Inherited[name], ":")
	}
	return map[string]string{"PATH": before("PATH", "bin"), "LD_LIBRARY_PATH": before("LD_LIBRARY_PATH", "lib",
		"lib/openmpi", "lib/pmix")}
}

// widest is the shortest useful prefix of a network, in bits. narrowest is the longest that Open MPI 4 reads: it takes
// a prefix of 32 for none (opal/util/net.c shifts by 32), so that it would use every interface, with the loopback and
// others that lose messages.
const (
	widest    = 8
	narrowest = 31
)

// network is the smallest network with all members' addresses: it selects the interface of each host that peers know,
// and not a bridge between other containers. It must be the same for all members, because mpirun hands its settings on.
// false if there is none: Open MPI accepts only IPv4 there, and then chooses the interfaces itself.
func network(members []registry.Row) (string, bool) {
	var shared netip.Prefix
	for i, host := range plan.Hosts(members) {
		a, err := netip.ParseAddr(host)
		if err != nil || !a.Is4() {
			return "", false
		}
		if i == 0 {
			shared = netip.PrefixFrom(a, narrowest).Masked()
		}
		for !shared.Contains(a) {
			shared = netip.PrefixFrom(shared.Addr(), shared.Bits()-1).Masked()
		}
	}
	return shared.String(), shared.Bits() >= widest
}

// several tells whether a component has more than one process in a container.
func several(slots map[string]int) bool {
	for _, n := range slots {
		if n > 1 {
			return true
		}
	}
	return false
}

// hostFile lists the slots of each instance: mpirun assigns the ranks in this order.
func hostFile(slots map[string]int, members []registry.Row) string {
	var b strings.Builder
	for i, row := range members {
		name := row.Instance.String()
		if i == 0 {
			name = "localhost" // mpirun runs here: its own container needs no remote start
		}
		fmt.Fprintf(&b, "%s slots=%d\n", name, max(1, slots[row.Component]))
	}
	return b.String()
}
