// Package doctor looks at a host and says what an agent can use there: its launcher, guard, state folder, ports,
// registry, policy, confinement, GPUs, Hadoop.
//
// Each Check says what was found and, if something is wrong, what mends it. The room starts a small process under the
// guard, python3 and muster-gpu, and claims one port. It ends and releases them; the state folder that it makes stays.
// `muster doctor` calls it.
package doctor
