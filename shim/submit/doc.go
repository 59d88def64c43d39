// Package submit brings a job to a resource manager: the files that its agents need into a store, by digest, and the job's
// own text to the launcher by the launcher's own API or client.
//
// What enters are local files, a store's URL and the texts that room render wrote; what leaves are URLs, the launcher's id of
// the job and how it stands. The package refuses to know definitions, rosters and verdicts: those are the registry's.
package submit
