package appdef

import "slices"

// MPIFamily tells whether a framework's processes are started by mpirun: by one instance in all.
func MPIFamily(framework string) bool {
	return slices.Contains([]string{"cntk", "horovod", "mpi"}, framework)
}

// oneEnds makes the outcome of an MPI job that of the instance which launches it: a chief where there is one, else a
// worker. The others wait for what is started in them, and never end by themselves.
func (s *settling) oneEnds() {
	if !MPIFamily(s.app.Settings.Framework) || s.app.Settings.Total.MinSucceeded > 0 {
		return
	}
	role := RoleWorker
	if slices.ContainsFunc(s.app.Components, func(c Component) bool { return c.Settings.Role == RoleChief && c.Instances > 0 }) {
		role = RoleChief
	}
	one := 1
	for i := range s.app.Components {
		if c := &s.app.Components[i]; c.Settings.Role == role && c.Settings.Complete.MinSucceeded == nil {
			c.Settings.Complete.MinSucceeded = &one
		}
	}
}
