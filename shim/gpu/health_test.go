package gpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		name   string
		vitals Vitals
		want   string // what: class
	}{
		{"well", Vitals{}, ""},
		{"lost", Vitals{Lost: true}, "fallen off the bus: reset-gpu"},
		{"reset", Vitals{ResetRequired: true}, "reset required: reset-gpu"},
		{"double bit", Vitals{DoubleBitErrors: 2}, "double-bit memory errors: reset-gpu"},
		{"remap", Vitals{RemapPending: true}, "row remapping pending: reset-gpu"},
		{"remap failed", Vitals{RemapFailed: true}, "row remapping failed: reset-gpu"},
		{"retirement", Vitals{RetirePending: true}, "page retirement pending: reset-gpu"},
		{"recovery", Vitals{Recovery: "node-reboot"}, "recovery action needed: reset-gpu"},
		{"fabric", Vitals{FabricPending: true}, "NVSwitch fabric not ready: reset-gpu"},
		{"all", Vitals{DoubleBitErrors: 1, RemapPending: true}, "double-bit memory errors: reset-gpu, row remapping pending: reset-gpu"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, f := range judge("GPU-a", tt.vitals) {
				got = append(got, f.What+": "+string(f.Class))
				if f.Device != "GPU-a" || f.Why == "" || f.Remedy == "" {
					t.Errorf("half a finding: %+v", f)
				}
			}
			if text := strings.Join(got, ", "); text != tt.want {
				t.Errorf("got %s, want %s", text, tt.want)
			}
		})
	}
}

func TestGate(t *testing.T) {
	ours := func(pid int) bool { return pid == 1 }
	compute := func(pids ...int) []Process {
		var out []Process
		for _, p := range pids {
			out = append(out, Process{PID: p, UsedMB: 500, Kind: "compute", GPUInstance: -1})
		}
		return out
	}
	for _, tt := range []struct {
		name   string
		device Device
		policy Policy
		want   string
	}{
		{"free", Device{}, Policy{}, ""},
		{"ours", Device{UsedMB: 30000, Processes: compute(1)}, Policy{Ours: ours}, ""},
		{"stranger", Device{Processes: compute(9, 1)}, Policy{Ours: ours}, "GPU-a: memory held by a stranger (process 9 with 500 MB): in-use"},
		{"nobody is ours", Device{Processes: compute(1)}, Policy{}, "GPU-a: memory held by a stranger (process 1 with 500 MB): in-use"},
		{"shared", Device{Processes: compute(9)}, Policy{Shared: true}, "GPU-a: memory held by a stranger (process 9 with 500 MB): ignore"},
		{"a desktop", Device{UsedMB: 2000, Processes: []Process{{PID: 4, Kind: "graphics"}}}, Policy{}, ""},
		{"hidden", Device{Processes: []Process{{PID: 4, UsedMB: -1, Kind: "mps"}}}, Policy{}, "GPU-a: memory held by a stranger (process 4): in-use"},
		{"the driver's own", Device{UsedMB: 600}, Policy{}, ""},
		{"leaked", Device{UsedMB: 1500}, Policy{}, "GPU-a: memory held by a stranger (1500 MB in use and no process to be seen): in-use"},
		{"a lower limit", Device{UsedMB: 600}, Policy{LeakMB: 100}, "GPU-a: memory held by a stranger (600 MB in use and no process to be seen): in-use"},
		{"sick", Device{Health: []Finding{{Device: "GPU-a", What: "sick", Why: "so", Class: ResetGPU}}}, Policy{}, "GPU-a: sick (so): reset-gpu"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.device.UUID = "GPU-a"
			var got []string
			for _, f := range Gate([]Device{tt.device}, tt.policy) {
				got = append(got, fmt.Sprintf("%s: %s (%s): %s", f.Device, f.What, f.Why, f.Class))
				if f.Refuses() == (f.Class == Ignore) {
					t.Errorf("%+v: refuses %v", f, f.Refuses())
				}
			}
			if text := strings.Join(got, "; "); text != tt.want {
				t.Errorf("got %s, want %s", text, tt.want)
			}
		})
	}
}

func TestOverMemory(t *testing.T) {
	procs := []Process{{PID: 1, UsedMB: 600}, {PID: 2, UsedMB: 900}, {PID: 1, UsedMB: 600}, {PID: 3, UsedMB: -1}, {PID: 4, UsedMB: 5000}}
	for _, tt := range []struct {
		name  string
		ours  func(int) bool
		limit int
		want  Process
	}{
		{"no limit", nil, 0, Process{}},
		{"within", func(pid int) bool { return pid < 4 }, 1200, Process{}},
		{"both devices together", func(pid int) bool { return pid < 4 }, 1199, Process{PID: 1, UsedMB: 1200}},
		{"strangers do not count", func(pid int) bool { return pid == 2 }, 1000, Process{}},
		{"all", nil, 2000, Process{PID: 4, UsedMB: 5000}},
		{"the first by pid", nil, 100, Process{PID: 1, UsedMB: 1200}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, over := overMemory(procs, tt.ours, tt.limit)
			if got != tt.want || over != (tt.want.PID != 0) {
				t.Errorf("got %+v (%v), want %+v", got, over, tt.want)
			}
		})
	}
}

type processAnswers []func() (map[string][]Process, error)

func (a *processAnswers) Processes(context.Context) (map[string][]Process, error) {
	next := (*a)[0]
	if len(*a) > 1 {
		*a = (*a)[1:]
	}
	return next()
}

func TestWatchdog(t *testing.T) {
	of := func(device string, mb int) func() (map[string][]Process, error) {
		return func() (map[string][]Process, error) {
			return map[string][]Process{device: {{PID: 5, UsedMB: mb}}}, nil
		}
	}
	fails := func(err error) func() (map[string][]Process, error) {
		return func() (map[string][]Process, error) { return nil, err }
	}
	w := Watchdog{Devices: []Device{{UUID: "GPU-a"}}, LimitMB: 100, Ours: func(int) bool { return true }}
	t.Run("over", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			got, err := w.Run(t.Context(), &processAnswers{of("GPU-a", 50), of("GPU-b", 500), fails(ErrHung), of("GPU-a", 101)})
			if err != nil || got != (Process{PID: 5, UsedMB: 101}) || time.Since(began) != 4*time.Second {
				t.Errorf("got %+v after %s (%v)", got, time.Since(began), err)
			}
		})
	})
	t.Run("counted once", func(t *testing.T) {
		// 60 MB in each of two GPU instances, one of them with two MIG devices and in two of the driver's lists
		of := func() (map[string][]Process, error) {
			return map[string][]Process{"GPU-a": {
				{PID: 5, UsedMB: 60, Kind: "compute", GPUInstance: 1},
				{PID: 5, UsedMB: 60, Kind: "graphics", GPUInstance: 1},
				{PID: 5, UsedMB: 60, Kind: "compute", GPUInstance: 2},
				{PID: 5, UsedMB: 60, Kind: "compute", GPUInstance: 3},
			}}, nil
		}
		device := func(instance int) Device { return Device{UUID: "GPU-a", Instance: &MIG{GPUInstance: instance}} }
		w := Watchdog{Devices: []Device{device(1), device(1), device(2)}, LimitMB: 119}
		synctest.Test(t, func(t *testing.T) {
			if got, err := w.Run(t.Context(), &processAnswers{of}); err != nil || got.UsedMB != 120 {
				t.Errorf("got %+v (%v), want 120 MB", got, err)
			}
		})
	})
	t.Run("closed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			if _, err := w.Run(t.Context(), &processAnswers{fails(errClosed)}); !errors.Is(err, errClosed) {
				t.Errorf("got %v", err)
			}
		})
	})
	t.Run("cancelled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := w.Run(ctx, &processAnswers{of("GPU-a", 50)}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
	})
}

func TestXids(t *testing.T) {
	known := xids
	if !slices.IsSortedFunc(known, func(a, b xid) int { return a.Number - b.Number }) {
		t.Error("not sorted")
	}
	for i, x := range known {
		if i > 0 && known[i-1].Number == x.Number {
			t.Errorf("Xid %d stands twice", x.Number)
		}
		if !slices.Contains([]Class{RestartApp, ResetGPU, Ignore}, x.Class) {
			t.Errorf("Xid %d: class %q", x.Number, x.Class)
		}
		if x.Name == "" || x.Meaning == "" || len(x.Causes) == 0 {
			t.Errorf("half an entry: %+v", x)
		}
		// Where NVIDIA's word is one of the three, ours is the same.
		if want, ok := map[string]Class{"RESTART_APP": RestartApp, "RESET_GPU": ResetGPU, "IGNORE": Ignore}[x.Action]; ok && x.Class != want {
			t.Errorf("Xid %d: NVIDIA says %s, the table %s", x.Number, x.Action, x.Class)
		}
	}
	for number, want := range map[int]Class{
		13: RestartApp, 31: RestartApp, 32: RestartApp, 38: Ignore, 43: Ignore, 44: Ignore, 45: Ignore, 48: ResetGPU, 56: Ignore, 57: ResetGPU,
		61: ResetGPU, 62: ResetGPU, 63: Ignore, 64: ResetGPU, 68: RestartApp, 69: RestartApp, 73: RestartApp, 74: ResetGPU, 79: ResetGPU, 92: Ignore,
		94: RestartApp, 95: ResetGPU, 109: ResetGPU, 110: ResetGPU, 119: ResetGPU, 120: ResetGPU, 121: Ignore, 122: Ignore, 123: Ignore, 124: Ignore,
		136: ResetGPU, 137: Ignore, 140: ResetGPU, 143: ResetGPU, 154: Ignore,
	} {
		if got := explain(number); got.Number != number || got.Class != want || got.Name == "unknown" {
			t.Errorf("Xid %d: got %s (%s), want %s", number, got.Class, got.Name, want)
		}
	}
	if got := explain(9999); got.Class != Ignore || got.Name != "unknown" || got.Number != 9999 {
		t.Errorf("an unknown number: %+v", got)
	}
}

func TestEventFinding(t *testing.T) {
	for _, tt := range []struct {
		event Event
		what  string
		class Class
	}{
		{Event{Kind: EventXid, Xid: 79}, "Xid 79 fallen off the bus", ResetGPU},
		{Event{Kind: EventXid, Xid: 31}, "Xid 31 memory page fault", RestartApp},
		{Event{Kind: EventXid, Xid: 45}, "Xid 45 preemptive removal", Ignore},
		{Event{Kind: EventECC}, "double-bit memory error", ResetGPU},
		{Event{Kind: EventUnavailable}, "unavailable", ResetGPU},
		{Event{Kind: EventRecovery, Recovery: "gpu-reset"}, "recovery action needed", ResetGPU},
		{Event{Kind: EventRecovery}, "recovered", Ignore},
		{Event{Kind: EventHelper, Text: "it ended"}, "helper", Ignore},
	} {
		f := tt.event.Finding()
		if f.What != tt.what || f.Class != tt.class || f.Why == "" || f.Remedy == "" {
			t.Errorf("%+v: got %+v", tt.event, f)
		}
	}
}
