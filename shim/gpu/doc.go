// Package gpu finds, chooses, claims and watches NVIDIA GPUs. In go what the helper muster-gpu says (or, without it,
// the device nodes), what the App asks for and what the launcher granted; out come devices that nobody else on this
// host has, what a container needs to see them, and what goes wrong with them while the app runs.
//
// It never loads NVML itself: a call into it can hang or end the process, and it needs a dynamic loader. muster-gpu does,
// as a child that speaks the line protocol of protocol.go; a helper that hangs or dies is replaced. Without GPU, driver
// or helper nothing here costs anything: Open is called by who asked for GPUs.
package gpu
