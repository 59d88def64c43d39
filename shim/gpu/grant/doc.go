// Package grant holds the GPUs of one instance, from before its plan is complete to its end.
//
// It owns the claim on the devices, the helper muster-gpu that watches them, and the goroutines that receive faults and
// hold processes to muster.gpu.memory; Close awaits them. It promises that no process starts on a device that is faulty
// or in use by a stranger, and that a process whose device fails is warned of or ended. shim/prepare takes a Grant for
// an instance; shim/process asks it before each start.
package grant
