// Package seccomp makes the filter of system calls (seccomp(2)) that every process of an app gets right before it is
// executed, in every engine.
//
// The default permits what ordinary programs, language runtimes, MPI and the frameworks call, and refuses the
// calls that reach the kernel's insides or other namespaces: keyrings, bpf, perf events, userfaultfd, io_uring,
// mounts, new or other namespaces, kernel modules. The operator's policy can allow or deny calls by name; nothing
// else can.
//
// It owns nothing: a filter is a value. package policy checks the names in a policy, package sandbox takes the
// default, package prepare compiles what a policy changes.
package seccomp
