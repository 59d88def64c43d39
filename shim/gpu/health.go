package gpu

import (
	"fmt"
	"slices"
	"strings"
)

// Class is what a fault asks for.
type Class string

// The classes, by what must happen before work goes on.
const (
	// RestartApp: the process has lost its work on the device, the device is fine.
	RestartApp Class = "restart-app"
	// ResetGPU: the device must be reset, or the host restarted, before it is used again.
	ResetGPU Class = "reset-gpu"
	// Ignore: it is written down, and nothing follows.
	Ignore Class = "ignore"
	// InUse: another process has the device. Of findings only.
	InUse Class = "in-use"
)

// Finding is something wrong with a device.
type Finding struct {
	Device string `json:"device"` // its ID
	What   string `json:"what"`   // the fault
	Why    string `json:"why"`    // what shows it
	Remedy string `json:"remedy"` // what the operator can do
	Class  Class  `json:"class"`
}

// Refuses tells that nothing should start on the device.
func (f Finding) Refuses() bool { return f.Class != Ignore }

func (f Finding) String() string {
	return fmt.Sprintf("%s: %s (%s): %s", f.Device, f.What, f.Why, f.Remedy)
}

const resetRemedy = "drain the host and reset the GPU (nvidia-smi --gpu-reset), or restart the host"

// judge says what the driver's facts mean.
func judge(id string, v Vitals) []Finding {
	var out []Finding
	add := func(bad bool, what, why, remedy string) {
		if bad {
			out = append(out, Finding{Device: id, What: what, Why: why, Remedy: remedy, Class: ResetGPU})
		}
	}
	add(v.Lost, "fallen off the bus", "the driver no longer reaches it",
		"restart the host; if it comes again, check seating, power and cooling")
	add(v.ResetRequired, "reset required", "the driver refuses it", resetRemedy)
	add(v.DoubleBitErrors > 0, "double-bit memory errors",
		fmt.Sprintf("%d uncorrectable since the driver was loaded", v.DoubleBitErrors), resetRemedy)
	add(v.RemapFailed, "row remapping failed", "no spare rows are left for the bad ones", "have the GPU replaced")
	add(v.RemapPending, "row remapping pending", "a bad memory row is replaced at the next reset", resetRemedy)
	add(v.RetirePending, "page retirement pending", "a bad memory page is left out after the next reset", resetRemedy)
	add(v.Recovery != "", "recovery action needed", "the driver asks for "+v.Recovery, recoveryRemedy(v.Recovery))
	add(v.FabricPending, "NVSwitch fabric not ready", "the fabric manager has not taken it up",
		"start or look at nvidia-fabricmanager")
	return out
}

func recoveryRemedy(action string) string {
	switch action {
	case "node-reboot", "system-reboot":
		return "restart the host"
	case "drain-p2p":
		return "end all work on the GPUs that share its NVLinks"
	case "recover-imex-domain":
		return "restart the IMEX domain"
	}
	return resetRemedy
}

// Policy is what the gate lets pass.
type Policy struct {
	// Ours tells whether a process on the device belongs to this instance. nil: none does.
	Ours func(pid int) bool
	// LeakMB is how much memory may be in use without a process that shows; 0: 1024, which is more than the driver
	// itself ever holds (up to 0.6 GB by the older of NVML's two counts).
	LeakMB int
	// Shared lets strangers' processes pass: the launcher has granted the device to several.
	Shared bool
}

// Gate is what forbids to start on the devices, in their order: what is wrong with each of them, and who else holds
// memory there. Empty: go. What is only worth a warning has class Ignore.
func Gate(devices []Device, p Policy) []Finding {
	var out []Finding
	for _, d := range devices {
		out = append(out, d.Health...)
		if f, found := foreignProcess(d, p); found {
			out = append(out, f)
		}
	}
	return out
}

func foreignProcess(d Device, p Policy) (Finding, bool) {
	f := Finding{Device: d.ID(), What: "memory held by a stranger", Class: InUse}
	if p.Shared {
		f.Class = Ignore
	}
	var others []string
	mine, anybody := false, len(d.Processes) > 0
	for _, proc := range d.Processes {
		if p.Ours != nil && p.Ours(proc.PID) {
			mine = true
			continue
		}
		// A desktop's server is no rival for the device.
		if proc.Kind != "graphics" {
			others = append(others, proc.String())
		}
	}
	leak := p.LeakMB
	if leak == 0 {
		leak = 1024
	}
	switch {
	case len(others) > 0:
		slices.Sort(others)
		f.Why = strings.Join(others, ", ")
		f.Remedy = "end these processes, or let the launcher grant another GPU"
		return f, true
	case !mine && !anybody && d.Instance == nil && d.UsedMB > leak:
		f.Why = fmt.Sprintf("%d MB in use and no process to be seen", d.UsedMB)
		f.Remedy = "look for processes with /dev/nvidia* open (fuser -v), then reset the GPU"
		return f, true
	}
	return Finding{}, false
}

func (p Process) String() string {
	if p.UsedMB < 0 {
		return fmt.Sprintf("process %d", p.PID)
	}
	return fmt.Sprintf("process %d with %d MB", p.PID, p.UsedMB)
}
