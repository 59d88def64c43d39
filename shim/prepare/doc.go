// Package prepare makes the container of one instance ready, before the gang's barrier: its plan with ports, image,
// user and GPUs, its folders, and the guard that will hold its process.
//
// It owns the lock on the instance's folder, the name of its cgroup, the layers of its image, and the claims of Ports
// and GPUs, until Close. It promises that the remains of another agent are replaced, that nothing another agent uses is
// touched, and that a plan which this host does not permit is refused before anything is laid out. The agent calls it
// while an instance is staged; `muster doctor` and `muster plan` ask it for the engine. ClearDead removes the remains
// of killed agents of this host.
package prepare
