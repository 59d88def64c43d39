// Package cgroup is one instance's cgroup on a host with cgroup v1, hybrid or v2: where it lies, its limits,
// what the kernel counted in it, and its end. A cgroup is `<own cgroup of that controller>/muster/<app>/<instance>`.
// It knows no container and no guard.
package cgroup
