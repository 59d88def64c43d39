// Package transfer copies files between stores and folders of this host: it lists them (Listing), brings them into a
// folder (Transfer.Bring) and sends them into a store (Transfer.Send). A file gets its name only once it is complete. A
// broken copy resumes where the store can, a stall is an error, and a Ledger records what has arrived, for the next
// agent as well.
//
// It owns the incomplete files that it makes and removes, and the goroutines of one call, which the call awaits. It
// knows no plan, no gang and no user: its callers open stores and folders for the user they act for. shim/data,
// shim/data/manager, shim/data/stream and shim/checkpoint call it.
package transfer
