// Package doctor looks at a host and says what an agent can use there: its launcher, guard, state folder, ports, registry,
// policy, confinement, GPUs, Hadoop. Each Check has what was found and, when something is wrong, what mends it.
//
// It starts one small process under the guard and claims one port, and leaves nothing behind. Caller: muster doctor.
package doctor
