package serve

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/muster-agent/muster/shim/gpu"
)

func (l *library) inventory() (gpu.Inventory, error) {
	handles, err := l.handles()
	if err != nil {
		return gpu.Inventory{}, err
	}
	hello := l.hello()
	inv := gpu.Inventory{Driver: hello.Driver, NVML: hello.NVML, CUDA: hello.CUDA, Devices: []gpu.Device{}}
	links := l.links(handles)
	for i, h := range handles {
		d := gpu.Device{Index: h.index, Minor: -1, NUMA: -1, UUID: h.uuid, Links: links[i]}
		if h.lost == nvml.SUCCESS {
			l.describe(h, &d)
		}
		inv.Devices = append(inv.Devices, d)
	}
	return inv, nil
}

func (l *library) describe(h handle, d *gpu.Device) {
	d.Name = or("")(ask(l, "nvmlDeviceGetName", h.GetName))
	d.Minor = or(-1)(ask(l, "nvmlDeviceGetMinorNumber", h.GetMinorNumber))
	if pci, ret := ask(l, "nvmlDeviceGetPciInfo", h.GetPciInfo); ret == nvml.SUCCESS {
		d.PCI = address(pci)
	}
	m, _ := l.memory(h)
	d.MemoryMB, d.UsedMB = int(m.Total>>20), int(m.Used>>20)
	d.NUMA = l.node(h)
	d.CPUs = l.cpus(h)
	l.instances(h, d)
}

// memory is in bytes. The second version of the count leaves out what the driver keeps for itself.
func (l *library) memory(h handle) (m nvml.Memory, known bool) {
	if m, ret := ask(l, "nvmlDeviceGetMemoryInfo_v2", h.GetMemoryInfo_v2); ret == nvml.SUCCESS {
		return nvml.Memory{Total: m.Total, Used: m.Used}, true
	}
	m, ret := ask(l, "nvmlDeviceGetMemoryInfo", h.GetMemoryInfo)
	return m, ret == nvml.SUCCESS
}

// Numbers that bound the sets that NVML fills; a multiple of what hosts have.
const (
	mostNodes = 64
	mostCPUs  = 4096
)

// node is the NUMA node of the host's memory next to the device. (nvmlDeviceGetNumaNodeId is for devices whose own
// memory is a node.)
func (l *library) node(h handle) int {
	set, ret := ask(l, "nvmlDeviceGetMemoryAffinity", func() ([]uint, nvml.Return) {
		return h.GetMemoryAffinity(mostNodes, nvml.AFFINITY_SCOPE_NODE)
	})
	if ret == nvml.SUCCESS {
		for i, word := range set {
			if word != 0 {
				return i*bits.UintSize + bits.TrailingZeros(word)
			}
		}
	}
	return -1
}

func (l *library) cpus(h handle) string {
	set, ret := ask(l, "nvmlDeviceGetCpuAffinity", func() ([]uint, nvml.Return) { return h.GetCpuAffinity(mostCPUs) })
	if ret != nvml.SUCCESS {
		return ""
	}
	return list(set)
}

// list writes a set of bits as the kernel does: 0-15,32-47.
func list(set []uint) string {
	in := func(n int) bool {
		return n/bits.UintSize < len(set) && set[n/bits.UintSize]>>(n%bits.UintSize)&1 == 1
	}
	var out []string
	for n := 0; n < len(set)*bits.UintSize; n++ {
		if !in(n) {
			continue
		}
		first := n
		for in(n + 1) {
			n++
		}
		text := strconv.Itoa(first)
		if n > first {
			text += "-" + strconv.Itoa(n)
		}
		out = append(out, text)
	}
	return strings.Join(out, ",")
}

// address is a PCI address as sysfs writes it. A GPU is always function 0.
func address(p nvml.PciInfo) string {
	return fmt.Sprintf("%04x:%02x:%02x.0", p.Domain, p.Bus, p.Device)
}

// instances adds the MIG instances.
func (l *library) instances(h handle, d *gpu.Device) {
	all := l.cut(h)
	d.MIGMode = all != nil
	for _, m := range all {
		memory, _ := l.memory(m)
		d.MIG = append(d.MIG, gpu.MIG{
			UUID: or("")(ask(l, "nvmlDeviceGetUUID", m.GetUUID)), Index: m.index, MemoryMB: int(memory.Total >> 20),
			GPUInstance:     or(-1)(ask(l, "nvmlDeviceGetGpuInstanceId", m.GetGpuInstanceId)),
			ComputeInstance: or(-1)(ask(l, "nvmlDeviceGetComputeInstanceId", m.GetComputeInstanceId)),
		})
	}
}

// cut are the instances of a device in MIG mode; nil: it is not in that mode.
func (l *library) cut(h handle) []handle {
	mode, ret := ask(l, "nvmlDeviceGetMigMode", func() (int, nvml.Return) {
		current, _, ret := h.GetMigMode()
		return current, ret
	})
	if ret != nvml.SUCCESS || mode != nvml.DEVICE_MIG_ENABLE {
		return nil
	}
	all := []handle{}
	most := or(0)(ask(l, "nvmlDeviceGetMaxMigDeviceCount", h.GetMaxMigDeviceCount))
	for i := range most {
		m, ret := ask(l, "nvmlDeviceGetMigDeviceHandleByIndex", func() (nvml.Device, nvml.Return) {
			return h.GetMigDeviceHandleByIndex(i)
		})
		if ret == nvml.SUCCESS { // not every number has one
			all = append(all, handle{Device: m, index: i})
		}
	}
	return all
}
