package gpu

import (
	"slices"
	"strconv"
)

// xid is one kind of error that the driver reports.
type xid struct {
	Number  int
	Name    string
	Meaning string
	// Action is NVIDIA's own word for what to do at once; empty: it gives none.
	Action string
	Class  Class
	Causes []cause
}

// cause is where an Xid can come from.
type cause string

// The causes.
const (
	causeApp      cause = "app"
	causeDriver   cause = "driver"
	causeHardware cause = "hardware"
)

// explain says what an Xid means. A number that NVIDIA does not publish is ignored, and says so.
func explain(number int) xid {
	i, found := slices.BinarySearchFunc(xids, number, func(x xid, n int) int { return x.Number - n })
	if found {
		return xids[i]
	}
	return xid{Number: number, Name: "unknown", Meaning: "NVIDIA's catalogue gives it no meaning", Class: Ignore}
}

// Class is what the event asks for.
func (e Event) Class() Class {
	switch e.Kind {
	case EventXid:
		return explain(e.Xid).Class
	case EventECC, EventUnavailable:
		return ResetGPU
	case EventRecovery:
		if e.Recovery != "" {
			return ResetGPU
		}
	}
	return Ignore
}

// Finding is the event as a verdict's cause needs it.
func (e Event) Finding() Finding {
	f := Finding{Device: e.Device, Why: e.Text, Class: e.Class()}
	switch e.Kind {
	case EventXid:
		x := explain(e.Xid)
		f.What, f.Why = "Xid "+strconv.Itoa(x.Number)+" "+x.Name, x.Meaning
		if x.Action != "" {
			f.Why += "; NVIDIA: " + x.Action
		}
	case EventECC:
		f.What, f.Why = "double-bit memory error", "the driver reported one while the app ran"
	case EventUnavailable:
		f.What, f.Why = "unavailable", "the driver gave the device up"
	case EventRecovery:
		f.What, f.Why = "recovery action needed", "the driver asks for "+e.Recovery
		if e.Recovery == "" {
			f.What, f.Why = "recovered", "the driver asks for nothing any more"
		}
	default:
		f.What = e.Kind
	}
	f.Remedy = e.remedy()
	return f
}

func (e Event) remedy() string {
	switch {
	case e.Kind == EventRecovery && e.Recovery != "":
		return recoveryRemedy(e.Recovery)
	case e.Kind == EventXid && e.Xid == 79:
		return "restart the host; if it comes again, check seating, power and cooling"
	}
	switch e.Class() {
	case ResetGPU:
		return resetRemedy
	case RestartApp:
		return "start the app again; if it comes again on other GPUs too, look for a bug in the app"
	case Ignore, InUse:
	}
	return "none"
}
