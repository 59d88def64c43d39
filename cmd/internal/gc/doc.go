// Package gc finds and removes what finished runs have left on this host: work folders at their default place, with
// the checkpoints and logs in them. A folder that --work-dir named is its user's and is never touched.
//
// Caller: muster gc.
package gc
