package appdef

import "slices"

// MPIFamily tells whether a framework's processes are started by mpirun: by one instance in all.
func MPIFamily(framework string) bool {
	return slices.Contains([]string{"cntk", "horovod", "mpi"}, framework)
}

// InGraph tells whether one instance of a TensorFlow app runs the script and all others a server.
func (a *App) InGraph() bool {
	return a.Settings.Framework == "tensorflow" && a.Settings.TensorFlowMode == InGraph
}

// oneEnds makes the outcome of an MPI job that of the instance which launches it, and of an in-graph one that of the
// instance which runs the script: a chief where there is one, else a worker. The others wait for what is started in them
// or serve, and never end by themselves.
func (s *settling) oneEnds() {
	one := MPIFamily(s.app.Settings.Framework) || s.app.InGraph()
	if !one || s.app.Settings.Total.MinSucceeded > 0 {
		return
	}
	role := RoleWorker
	if slices.ContainsFunc(s.app.Components, func(c Component) bool { return c.Settings.Role == RoleChief && c.Instances > 0 }) {
		role = RoleChief
	}
	enough := 1
	for i := range s.app.Components {
		if c := &s.app.Components[i]; c.Settings.Role == role && c.Settings.Complete.MinSucceeded == nil {
			c.Settings.Complete.MinSucceeded = &enough
		}
	}
}
