// Package side decides when a side process is started again.
//
// It is pure and owns nothing: the lifetime of a process comes in as a value, the pause before its next start goes out.
// It promises that a side that ends at once is started ever less often. shim/process calls it at each end of a side.
package side
