// Package job is a job at its launcher: how it stands, and why it could not be started.
//
// It declares Client, which each launcher's room `client` implements, and holds what those share: one HTTP API (API)
// and one client program (Runner), each with bounded patience, and the errors that decide what a submission does
// next: ErrRuns, ErrForeign, ErrUnreachable, ErrRefused, ErrUnknown.
//
// It owns the processes that Runner starts, each in a group of its own, which end before Run returns. It promises
// that what starts a job is not broken off once it has begun. Rooms client and shim/submit call it.
package job
