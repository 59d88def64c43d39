// Package doctor looks at a host and says what an agent can use there: its launcher, guard, state folder, ports,
// registry, policy, confinement, GPUs, Hadoop.
//
// Each Check says what was found and, if something is wrong, what mends it. The room starts one small process under the
// guard and claims one port; it promises to leave nothing behind. `muster doctor` calls it.
package doctor
