// Package cgroup is one instance's cgroup on a host with cgroup v1, hybrid or v2: where it lies, its limits, what the
// kernel counted in it, and its end. A cgroup is `<own cgroup of that controller>/muster/<app>/<instance>`. Every
// engine has its cgroup made here, and what no cgroup can hold on this host is said here (Tree.Cannot). The package
// knows no container and no guard.
//
// A Group owns the folders that it made, in each hierarchy, and their open descriptors until Remove. On v2 the calling
// process moves to a leaf that the agents of one unit share. Remove promises that no process is left inside, and
// RemoveAt clears what a killed agent has recorded. The engines of package sandbox call it; doctor and the plan ask for
// the Tree.
package cgroup
