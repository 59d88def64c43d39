// Package container puts namespaces, a root and a cgroup around a guard, with libcontainer. It is the one door to
// libcontainer, which is no promised library interface. Nothing that it mounts is seen by the host: all
// of it is in the container's own mount namespace and goes with its last process.
package container
