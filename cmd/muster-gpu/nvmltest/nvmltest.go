// Package nvmltest makes an NVML of a host with GPUs that is not there, for tests: go-nvml's own mocks of DGX machines,
// with the functions that they leave out (topology, health, processes, events), and faults to order. It is no part of
// muster-gpu.
package nvmltest

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync/atomic"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/gpus"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"

	"github.com/muster-agent/muster/shim/gpu"
)

// Host is a machine and what is wrong with it. Its zero value is a healthy DGX A100: 8 GPUs, joined by switches, four
// on each of two NUMA nodes. UUIDs are UUID(First+index), the same in every process.
type Host struct {
	Model string `json:"model"` // a100, h100, h200, b200
	Count int    `json:"count"` // 0: 8
	// First is the number in the first device's node and UUID: two tests that claim at one time need different ones.
	First int `json:"first"`
	// Links: "switch" (all GPUs reach all), "islands" (two groups of direct links, the halves) or "none".
	Links string `json:"links"`

	UsedMB    map[int]int           `json:"used_mb"`
	Busy      map[int]int           `json:"busy"` // percent of the time
	Processes map[int][]gpu.Process `json:"processes"`
	MIG       map[int]int           `json:"mig"` // instances of a GPU in MIG mode
	Faults

	NoDriver bool     `json:"no_driver"` // Init fails
	Missing  []string `json:"missing"`   // symbols that the library lacks; calling one panics

	// Hang and Die name operations that never return, and that end the process; with Once only as long as that file
	// does not exist, which it then does.
	Hang gpu.Op `json:"hang"`
	Die  gpu.Op `json:"die"`
	Once string `json:"once"`

	Events []Trigger `json:"events"`
	// Fire takes events from the process that the mock lives in.
	Fire chan Trigger `json:"-"`
}

// Faults are what is wrong with the devices, by index.
type Faults struct {
	DoubleBit     map[int]uint64 `json:"double_bit"`
	RemapPending  []int          `json:"remap_pending"`
	RemapFailed   []int          `json:"remap_failed"`
	RetirePending []int          `json:"retire_pending"`
	FabricPending []int          `json:"fabric_pending"`
	Recovery      map[int]uint32 `json:"recovery"` // NVML's number
	Lost          []int          `json:"lost"`
}

// Trigger is an event that happens once, when File appears.
type Trigger struct {
	Device int    `json:"device"`
	Kind   string `json:"kind"` // of gpu.Event, or "lost": the device falls off the bus, and the wait for events fails
	Xid    int    `json:"xid"`
	// GPUInstance is that of a GPU in MIG mode; nil: the event is of the whole GPU.
	GPUInstance *int   `json:"gpu_instance"`
	File        string `json:"file"`
}

// Environment names the file with a Host in JSON that Open reads.
const Environment = "MUSTER_GPU_TEST_HOST"

// Open makes the NVML of the host that the environment describes: without one a DGX A100.
func Open() (nvml.Interface, error) {
	var h Host
	if path := os.Getenv(Environment); path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &h); err != nil {
			return nil, fmt.Errorf("parse %s: %w", path, err)
		}
	}
	return New(h)
}

// UUID is that of the GPU with the device node of the number.
func UUID(minor int) string { return fmt.Sprintf("GPU-5a5a0000-0000-4000-8000-%012d", minor) }

// MIGUUID is that of an instance.
func MIGUUID(minor, instance int) string {
	return fmt.Sprintf("MIG-5a5a0000-0000-4000-8000-%06d%06d", minor, instance)
}

var models = map[string]gpus.Config{
	"": gpus.A100_SXM4_40GB, "a100": gpus.A100_SXM4_40GB, "h100": gpus.H100_SXM5_80GB, "h200": gpus.H200_SXM5_141GB,
	"b200": gpus.B200_SXM5_180GB,
}

// New makes the NVML of a host.
func New(h Host) (nvml.Interface, error) {
	model, ok := models[h.Model]
	if !ok {
		return nil, fmt.Errorf("no mock of model %q", h.Model)
	}
	if h.Count == 0 {
		h.Count = 8
	}
	s, err := server.New(server.WithGPUs(gpus.Multiple(h.Count, model)...),
		server.WithDriverVersion("550.54.15"), server.WithNVMLVersion("12.550.54.15"),
		server.WithCUDADriverVersion(12040))
	if err != nil {
		return nil, err
	}
	m := &machine{Host: h, server: s}
	m.library()
	for i, d := range s.Devices {
		m.device(i, d.(*server.Device))
	}
	return s, nil
}

type machine struct {
	Host
	server *server.Server
	fired  []bool       // of Events
	fallen atomic.Int64 // 1 + the device that fell off the bus while it was watched
}

// at runs before an operation's first own call.
func (m *machine) at(op gpu.Op) {
	if op != m.Hang && op != m.Die {
		return
	}
	if m.Once != "" {
		f, err := os.OpenFile(m.Once, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return
		}
		f.Close()
	}
	if op == m.Die {
		fmt.Fprintln(os.Stderr, "symbol lookup error: as told by the test")
		os.Exit(127)
	}
	select {}
}

// needs ends like the loader does when a symbol is called that the library lacks.
func (m *machine) needs(symbol string) {
	if slices.Contains(m.Missing, symbol) {
		panic("undefined symbol: " + symbol)
	}
}

func (m *machine) library() {
	s := m.server
	s.LookupSymbolFunc = func(symbol string) error {
		if slices.Contains(m.Missing, symbol) {
			return fmt.Errorf("symbol %q not found", symbol)
		}
		return nil
	}
	s.InitFunc = func() nvml.Return {
		m.at(gpu.OpHello)
		if m.NoDriver {
			return nvml.ERROR_DRIVER_NOT_LOADED
		}
		return nvml.SUCCESS
	}
	s.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if slices.Contains(m.Lost, i) || int(m.fallen.Load())-1 == i {
			return nil, nvml.ERROR_GPU_IS_LOST
		}
		return s.Devices[i], nvml.SUCCESS
	}
	s.EventSetCreateFunc = m.eventSet
}
