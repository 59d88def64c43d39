package appdef

import "slices"

// MPIFamily tells whether mpirun starts a framework's processes: one instance starts those of all.
func MPIFamily(framework string) bool {
	return slices.Contains([]string{"cntk", "horovod", "mpi"}, framework)
}

// InGraph tells whether one instance of a TensorFlow app runs the script, and all others run a server.
func (a *App) InGraph() bool {
	return a.Settings.Framework == "tensorflow" && a.Settings.TensorFlowMode == inGraph
}

// oneEnds makes one instance decide the outcome: in an MPI job the instance that launches it, in an in-graph job the
// instance that runs the script. That is a chief if there is one, else a worker. The others serve, or wait for the
// processes that mpirun starts in them, and never end by themselves: so one end with 0 is that instance's. The rule
// does not depend on counts, because they change while an app runs.
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
