// Package transfer copies files between stores and folders of this host: it lists them (Listing), brings them into a
// folder (Transfer.Bring) and sends them into a store (Transfer.Send). A file has its name only once it is complete.
// What breaks goes on where the store can, a stall is an error, and what came before is remembered in a Ledger, for the
// next agent as well.
//
// It owns the half files that it makes and removes, and the goroutines of one call, which the call awaits. It knows no
// plan, no gang and no user: its callers open stores and folders for whom they act. shim/data, shim/checkpoint and the
// staging of files call it.
package transfer
