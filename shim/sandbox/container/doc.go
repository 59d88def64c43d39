// Package container puts namespaces and a root around a first process (the guard), and lets it join a cgroup that
// package cgroup has made. It alone knows libcontainer, which is no promised library interface.
//
// A container owns its folder, its folder in memory, its mounts and libcontainer's state; Clear removes what a killed
// maker has left of them. Nothing that it mounts is seen by the host: all mounts are in the container's own mount
// namespace and end with its last process. The container engine of package sandbox is its caller.
package container
