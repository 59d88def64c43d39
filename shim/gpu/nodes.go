package gpu

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// nodeDevices finds the GPUs without a helper: from their device nodes, and what the kernel driver writes about them
// (/proc/driver/nvidia/gpus, /sys/bus/pci). root is the host's, "/" or a copy. What it cannot know is health, memory,
// processes and NVLink. No driver or no node is an empty list.
func nodeDevices(root string) ([]Device, error) {
	entries, err := os.ReadDir(filepath.Join(root, "dev"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list GPU device nodes: %w", err)
	}
	known := informationOf(root)
	var out []Device
	for _, e := range entries {
		minor, ok := strings.CutPrefix(e.Name(), "nvidia")
		n, err := strconv.Atoi(minor)
		if !ok || err != nil || n < 0 {
			continue
		}
		d, ok := known[n]
		if !ok {
			d = Device{NUMA: -1}
		}
		d.Minor = n
		d.Closed = isClosed(root, n)
		out = append(out, d)
	}
	// NVML counts by PCI address, so the indices of a launcher's grant mean this order.
	slices.SortFunc(out, func(a, b Device) int { return cmp.Or(cmp.Compare(a.PCI, b.PCI), a.Minor-b.Minor) })
	for i := range out {
		out[i].Index = i
	}
	return out, nil
}

// isClosed tells that device rules of its cgroup keep this process off a device: its launcher granted others, or none.
// access(2) asks the rules, and unlike open(2) wakes no GPU. A cgroup's own list does not say what it denies when it
// allows the rest.
func isClosed(root string, minor int) bool {
	node := filepath.Join(root, "dev", "nvidia"+strconv.Itoa(minor))
	return minor >= 0 && errors.Is(unix.Access(node, unix.R_OK|unix.W_OK), unix.EPERM)
}

// informationOf reads /proc/driver/nvidia/gpus/<pci>/information, by minor number.
func informationOf(root string) map[int]Device {
	files, _ := filepath.Glob(filepath.Join(root, "proc/driver/nvidia/gpus/*/information"))
	out := map[int]Device{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // without it the node alone counts
		}
		d, ok := parseInformation(string(text))
		if !ok {
			continue
		}
		d.NUMA, d.CPUs = pciPlace(root, d.PCI)
		out[d.Minor] = d
	}
	return out
}

// parseInformation reads lines like `Model: 		 NVIDIA A100-SXM4-40GB`. It needs `Device Minor`.
func parseInformation(text string) (Device, bool) {
	d := Device{Minor: -1, NUMA: -1}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(name) {
		case "Model":
			if value != "Unknown" {
				d.Name = value
			}
		case "GPU UUID":
			// Question marks stand there until the GPU was used for the first time.
			if strings.HasPrefix(value, "GPU-") && !strings.Contains(value, "?") {
				d.UUID = value
			}
		case "Bus Location":
			d.PCI = strings.ToLower(value)
		case "Device Minor":
			if n, err := strconv.Atoi(value); err == nil {
				d.Minor = n
			}
		}
	}
	return d, d.Minor >= 0
}

// pciPlace is the NUMA node of a PCI device, -1 if the host has or tells none, and the CPUs near it.
func pciPlace(root, pci string) (node int, cpus string) {
	if pci == "" {
		return -1, ""
	}
	dir := filepath.Join(root, "sys/bus/pci/devices", pci)
	node = -1
	if text, err := os.ReadFile(filepath.Join(dir, "numa_node")); err == nil {
		if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			node = n
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "local_cpulist")); err == nil {
		cpus = strings.TrimSpace(string(text))
	}
	return node, cpus
}

var moduleVersion = regexp.MustCompile(`Kernel Module.*?\s(\d+\.\d+(?:\.\d+)?)\s`)

// driverVersion is that of the loaded kernel module, from /proc/driver/nvidia/version; empty: none is loaded.
func driverVersion(root string) string {
	text, err := os.ReadFile(filepath.Join(root, "proc/driver/nvidia/version"))
	if err != nil {
		return ""
	}
	if m := moduleVersion.FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return ""
}

// NodesInventory is the devices of the nodes with the driver's version.
func NodesInventory(root string) (Inventory, error) {
	devices, err := nodeDevices(root)
	return Inventory{Driver: driverVersion(root), Source: "device nodes", Devices: devices}, err
}
