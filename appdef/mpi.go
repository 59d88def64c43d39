package appdef

import "slices"

// MPIFamily tells whether a framework's processes are started by mpirun: by one instance in all.
func MPIFamily(framework string) bool {
	return slices.Contains([]string{"cntk", "horovod", "mpi"}, framework)
}

// InGraph tells whether one instance of a TensorFlow app runs the script and all others a server.
func (a *App) InGraph() bool {
	return a.Settings.Framework == "tensorflow" && a.Settings.TensorFlowMode == inGraph
}

// oneEnds makes the outcome of an MPI job that of the instance which launches it, and of an in-graph one that of the
// instance which runs the script: a chief where there is one, else a worker. The others wait for what is started in
// them or serve, and never end by themselves, so one end with 0 among both is that instance's. How many there are is
// not asked: counts change while an app runs, its definition does not.
func (s *settling) oneEnds() {
	one := MPIFamily(s.app.Settings.Framework) || s.app.InGraph()
	if !one || s.app.Settings.Total.MinSucceeded > 0 {
		return
	}
	enough := 1
	for i := range s.app.Components {
		c := &s.app.Components[i].Settings
		if (c.Role == RoleChief || c.Role == RoleWorker) && c.Complete.MinSucceeded == nil {
			c.Complete.MinSucceeded = &enough
		}
	}
}
