// Package gpu finds, chooses, claims and watches NVIDIA GPUs. In go the answers of the helper muster-gpu (or, without
// it, the device nodes), what the App asks for and what the launcher granted; out come devices that no other agent on
// this host has, what a container needs to see them, and their faults while the app runs.
//
// The package never loads NVML itself: a call into it can hang or end the process, and it needs a dynamic loader.
// muster-gpu does, as a child that speaks the line protocol of protocol.go; a helper that hangs or dies is replaced. A
// Helper owns that child and its goroutines until Close; a claim owns its locks until Release. Without GPU, driver or
// helper the package costs nothing: only an app that asks for GPUs calls Open. package grant is its caller.
package gpu
