package launcher

// kubernetes reads an indexed Job's variables. The component is known where the pod template hands
// down the JobSet annotation `jobset.sigs.k8s.io/replicatedjob-name` under its usual name.
func (f *finder) kubernetes() {
	a := &f.found.Allocation
	f.take(&a.ContainerID, "container_id", "POD_NAME", "HOSTNAME")
	f.take(&a.Host, "host", "POD_IP")
	f.take(&f.found.Component, "component", "REPLICATED_JOB_NAME")
	f.number(&f.found.Index, "index", "JOB_COMPLETION_INDEX")
}
