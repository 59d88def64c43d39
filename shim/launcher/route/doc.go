// Package route asks this host for the addresses by which peers reach it.
//
// An address or a name comes in; addresses go out. Source is the address that the kernel would use to reach a given
// one, Default that of the default route, and Lookup gives the addresses of a name.
//
// The room owns nothing after a call. It promises to send nothing but the questions of a name's resolution, and to wait
// for their answers for three seconds at most. Caller: shim/member, which chooses the host's address.
package route
