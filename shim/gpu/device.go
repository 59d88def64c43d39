package gpu

import (
	"fmt"
	"slices"
	"strings"
)

// Device is one GPU, or one MIG instance of it.
type Device struct {
	Index int `json:"index"` // NVML's number: in the order of PCI addresses; -1: unknown
	Minor int `json:"minor"` // of /dev/nvidia<minor>; -1: unknown
	// UUID is "GPU-…"; empty when only the device node is known.
	UUID     string `json:"uuid"`
	Name     string `json:"name"` // the model
	PCI      string `json:"pci"`  // 0000:1b:00.0, as sysfs writes it
	MemoryMB int    `json:"memory_mb"`
	UsedMB   int    `json:"used_mb"`
	NUMA     int    `json:"numa"`            // node of the host; -1: unknown
	CPUs     string `json:"cpus,omitempty"`  // the CPUs near it, as a list: 0-15,32-47
	Links    []Link `json:"links,omitempty"` // NVLink peers, by index
	MIG      []MIG  `json:"mig,omitempty"`   // its instances
	MIGMode  bool   `json:"mig_mode,omitempty"`
	// Instance is the MIG instance that was granted; nil: the whole GPU.
	Instance  *MIG      `json:"instance,omitempty"`
	Health    []Finding `json:"health,omitempty"` // what is wrong with it, whoever uses it
	Closed    bool      `json:"closed,omitempty"` // the cgroup of this process keeps it off the device
	Processes []Process `json:"processes,omitempty"`
}

// Link is a peer reached by NVLink, directly or through a switch.
type Link struct {
	Peer  int `json:"peer"`  // its index
	Count int `json:"count"` // how many links carry it
}

// MIG is an instance of a GPU that is cut into several.
type MIG struct {
	UUID            string `json:"uuid"` // "MIG-…"
	Index           int    `json:"index"`
	GPUInstance     int    `json:"gpu_instance"`
	ComputeInstance int    `json:"compute_instance"`
	MemoryMB        int    `json:"memory_mb"`
}

// Process uses a GPU. PID is of the namespace that the driver sees, the host's.
type Process struct {
	PID    int    `json:"pid"`
	UsedMB int    `json:"used_mb"` // -1: the driver does not say
	Kind   string `json:"kind"`    // compute, mps or graphics
	// GPUInstance is the MIG instance's GPU instance that it runs in; -1: the whole GPU.
	GPUInstance int `json:"gpu_instance"`
}

// Inventory is all that one host has.
type Inventory struct {
	Driver string `json:"driver"` // version; empty: unknown
	NVML   string `json:"nvml"`
	CUDA   string `json:"cuda"` // the newest CUDA that the driver runs: 12.4
	// Source says where it comes from: muster-gpu or device nodes.
	Source  string   `json:"source"`
	Devices []Device `json:"devices"`
}

// ID names the device for CUDA, CDI and people: the MIG instance, the UUID, else the index.
func (d Device) ID() string {
	switch {
	case d.Instance != nil:
		return d.Instance.UUID
	case d.UUID != "":
		return d.UUID
	case d.Index >= 0:
		return fmt.Sprint(d.Index)
	}
	return fmt.Sprintf("minor %d", d.Minor)
}

// String is how errors name it: GPU 3 (GPU-…, NVIDIA A100).
func (d Device) String() string {
	facts := []string{d.UUID, d.Name}
	if d.Instance != nil {
		facts[0] = d.Instance.UUID
	}
	facts = slices.DeleteFunc(facts, func(s string) bool { return s == "" })
	name := fmt.Sprintf("GPU %d", d.Index)
	if d.Index < 0 {
		name = "GPU"
	}
	if len(facts) == 0 {
		return name
	}
	return name + " (" + strings.Join(facts, ", ") + ")"
}

// linksTo is the number of NVLinks to the other device.
func (d Device) linksTo(other Device) int {
	for _, l := range d.Links {
		if l.Peer == other.Index {
			return l.Count
		}
	}
	return 0
}

// Users are those of a GPU's processes that use this device of it: all, or those of the MIG instance.
func (d Device) Users(onGPU []Process) []Process {
	if d.Instance == nil {
		return onGPU
	}
	return slices.DeleteFunc(slices.Clone(onGPU), func(p Process) bool {
		return p.GPUInstance != d.Instance.GPUInstance
	})
}

// concerns tells whether something that happened to a GPU, or to one GPU instance of it, happened to this device.
func (d Device) concerns(uuid string, instance *int) bool {
	return uuid != "" && d.UUID == uuid && (instance == nil || d.Instance == nil || *instance == d.Instance.GPUInstance)
}

// unusable is why nothing should start on the device: the first finding that refuses it.
func (d Device) unusable() (Finding, bool) {
	for _, f := range d.Health {
		if f.Refuses() {
			return f, true
		}
	}
	return Finding{}, false
}
