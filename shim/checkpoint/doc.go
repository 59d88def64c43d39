// Package checkpoint keeps copies of checkpoints in a store under a manifest, and brings one back. It refuses to know what a
// gang is and which step it resumes from.
package checkpoint
