package cgroup

import (
	"slices"

	"github.com/containerd/cgroups/v3/cgroup2"
	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// quotaPeriod of a hard CPU limit, in microseconds: the kernel's default.
const quotaPeriod = 100_000

// maxShares bounds cpu.shares (sched-design-CFS); a core is worth 1024.
const maxShares = 262144

func shares(cores int) uint64 { return min(uint64(cores)*1024, maxShares) }

// legacyResources are l as containerd writes them on v1; swap: the kernel counts it.
func legacyResources(l Limits, swap bool) *specs.LinuxResources {
	r := &specs.LinuxResources{}
	if l.Memory > 0 {
		r.Memory = &specs.LinuxMemory{Limit: &l.Memory}
		if swap {
			both := l.Memory + l.Swap
			r.Memory.Swap = &both
		}
	}
	if l.CPU > 0 {
		weight := shares(l.CPU)
		r.CPU = &specs.LinuxCPU{Shares: &weight}
		if l.Hard {
			quota, period := int64(l.CPU)*quotaPeriod, uint64(quotaPeriod)
			r.CPU.Quota, r.CPU.Period = &quota, &period
		}
	}
	if l.Pids > 0 {
		r.Pids = &specs.LinuxPids{Limit: &l.Pids}
	}
	r.Devices = rules(l.Devices)
	return r
}

// unifiedResources are l as containerd writes them on v2, for the controllers that may be used. One that has no
// limit is there too: it counts.
func unifiedResources(l Limits, swap bool, usable func(controller string) bool) *cgroup2.Resources {
	r := &cgroup2.Resources{Devices: rules(l.Devices)}
	if usable("memory") {
		r.Memory = &cgroup2.Memory{}
		if l.Memory > 0 {
			r.Memory.Max = &l.Memory
		}
		if l.Memory > 0 && swap {
			r.Memory.Swap = &l.Swap
		}
		if l.High > 0 {
			r.Memory.High = &l.High
		}
		if l.Group {
			r.Memory.OOMGroup = &l.Group
		}
	}
	if usable("cpu") {
		r.CPU = &cgroup2.CPU{}
		if l.CPU > 0 {
			weight := cgroups.ConvertCPUSharesToCgroupV2Value(shares(l.CPU))
			r.CPU.Weight = &weight
			if l.Hard {
				quota, period := int64(l.CPU)*quotaPeriod, uint64(quotaPeriod)
				r.CPU.Max = cgroup2.NewCPUMax(&quota, &period)
			}
		}
	}
	if usable("pids") {
		r.Pids = &cgroup2.Pids{Max: l.Pids}
	}
	return r
}

// StandardDevices are the nodes that every process may use, and that a container has in its /dev.
func StandardDevices() []Device {
	return []Device{
		{Path: "/dev/null", Type: 'c', Major: 1, Minor: 3, Access: "rwm"},
		{Path: "/dev/zero", Type: 'c', Major: 1, Minor: 5, Access: "rwm"},
		{Path: "/dev/full", Type: 'c', Major: 1, Minor: 7, Access: "rwm"},
		{Path: "/dev/random", Type: 'c', Major: 1, Minor: 8, Access: "rwm"},
		{Path: "/dev/urandom", Type: 'c', Major: 1, Minor: 9, Access: "rwm"},
		{Path: "/dev/tty", Type: 'c', Major: 5, Minor: 0, Access: "rwm"},
	}
}

// general are allowed beside the standard devices: pseudo terminals, and to make any node, as in other containers, so
// that an image can be unpacked inside; to open such a node is what the list forbids.
var general = []Device{
	{Type: 'c', Major: -1, Minor: -1, Access: "m"},
	{Type: 'b', Major: -1, Minor: -1, Access: "m"},
	{Type: 'c', Major: 5, Minor: 2, Access: "rwm"},    // ptmx
	{Type: 'c', Major: 136, Minor: -1, Access: "rwm"}, // pts/*
}

// rules deny everything, then allow the standard devices and those of the list; nil for a nil list.
func rules(list []Device) []specs.LinuxDeviceCgroup {
	if list == nil {
		return nil
	}
	out := []specs.LinuxDeviceCgroup{rule(Device{Type: 'a', Major: -1, Minor: -1}, false, "rwm")}
	for _, d := range slices.Concat(general, StandardDevices(), list) {
		out = append(out, rule(d, true, d.Access))
		if refused := refused(d.Access); refused != "" {
			out = append(out, rule(d, false, refused))
		}
	}
	return out
}

// refused is what an access of only r or only w must deny by name: containerd's filter on v2 lets an open for both
// pass at the rule that allows one of them. Later rules come first there.
func refused(access string) string {
	var r, w bool
	for _, a := range access {
		r, w = r || a == 'r', w || a == 'w'
	}
	switch {
	case r && !w:
		return "w"
	case w && !r:
		return "r"
	}
	return ""
}

func rule(d Device, allow bool, access string) specs.LinuxDeviceCgroup {
	return specs.LinuxDeviceCgroup{Allow: allow, Type: string(d.Type), Major: &d.Major, Minor: &d.Minor, Access: access}
}
