// Package gc finds and removes what is no longer needed on this host: the work folders of finished runs at their
// default place, with the checkpoints and logs in them, and what this user's cache has that no agent holds. A folder
// that --work-dir named is its user's and is never touched.
//
// Caller: muster gc.
package gc
