// Package prepare makes the container of one instance ready, before the gang's barrier: its plan with ports, image,
// user and GPUs, its folders, and the guard that will hold its process.
//
// It owns the lock on the instance's folder, the name of its cgroup, the layers of its image, and what Ports and GPUs
// have taken, until Close. It promises that what another agent left is replaced, that nothing another agent uses is
// touched, and that a plan which this host does not permit is refused before anything is laid out. Package shim calls
// it while an instance is staged; the doctor and `muster plan` ask it which engine there is. ClearDead removes what
// killed agents of this host have left.
package prepare
