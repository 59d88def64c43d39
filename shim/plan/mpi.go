package plan

import (
	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
)

// Files of the launching instance, under its folder.
const (
	// MPIHostFile lists the instances and their slots.
	MPIHostFile = "mpi/hostfile"
	// Program is muster itself, in a folder where mpirun and the ssh server find it in every root.
	Program = "app/bin/muster"
)

// mpi is the instance's part; nil if mpirun starts nothing here.
func (b *builder) mpi() *MPI {
	if !appdef.MPIFamily(b.app.Settings.Framework) || !runsUnderMPI(b.component) {
		return nil
	}
	m := &MPI{Slots: map[string]int{}}
	for _, c := range Order(b.app) {
		if runsUnderMPI(c) && c.Instances > 0 {
			m.Slots[c.Name] = max(1, c.Settings.Processes)
		}
	}
	for _, role := range []appdef.Role{appdef.RoleChief, appdef.RoleWorker} {
		for _, c := range Order(b.app) {
			if c.Settings.Role == role && c.Instances > 0 {
				m.Launches = c.Name == b.req.Component && b.req.Index == 0
				return m
			}
		}
	}
	return m
}

func runsUnderMPI(c *appdef.Component) bool {
	return c.Settings.Role == appdef.RoleChief || c.Settings.Role == appdef.RoleWorker
}

// parked tells whether the instance only waits for processes that mpirun starts in it.
func (b *builder) parked() bool {
	m := b.mpi()
	return m != nil && !m.Launches
}

// MPIMembers are the instances that run processes of an MPI job, the launching one first.
func MPIMembers(r registry.Roster) []registry.Row {
	var chiefs, workers []registry.Row
	for _, row := range r.Rows {
		switch row.Role {
		case roleChief:
			chiefs = append(chiefs, row)
		case roleWorker:
			workers = append(workers, row)
		}
	}
	return append(chiefs, workers...)
}

// eachAtHome leaves the folders in the command of an MPI job to the shell: the command is planned once, and runs in
// every instance.
func (b *builder) eachAtHome(scope *appdef.Resolver) {
	if b.mpi() != nil {
		scope.WorkRoot, scope.LogRoot = "${MUSTER_WORK_DIR}", "${MUSTER_LOG_DIR}"
	}
}
