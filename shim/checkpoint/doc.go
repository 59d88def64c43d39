// Package checkpoint keeps the checkpoints of one instance. A Manager watches the folder that the process saves to,
// reports newer steps to the machine and commits them in the registry. Where the definition names a store
// (muster.checkpoint.sync) it uploads them there under a Manifest, and downloads what a generation resumes from. What
// the gang does not resume from is quarantined, never deleted.
//
// It owns the mark and the quarantine folders in the checkpoint folder (.muster-*), the app's folder in the store, the
// lock of the one agent of a host that uploads from a shared folder, and the goroutines that watch and upload; Close
// awaits them. It promises that a copy is complete under its name or not there at all, that only a member of the
// generation that saved a step commits it, and that a start fails rather than resume from another step than its gang.
//
// Which saves are complete is known to shim/checkpoint/format, and which step a gang resumes from to
// registry/conductor. The agent calls the Manager at the steps of the membership and of the process.
package checkpoint
