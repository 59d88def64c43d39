package gpu

import (
	"slices"
	"strconv"
	"strings"
)

// Env is what the process is told about its devices: GPU_NUM, CUDA_VISIBLE_DEVICES, NVIDIA_VISIBLE_DEVICES. No devices
// hide all of them.
//
// Devices are named by UUID: it means the same in every container and does not depend on the order in which CUDA counts
// (the fastest first by default, where NVML and launchers count by PCI address). Only where the UUID is not known the
// index stands: with container, where nothing else is visible, counted among these devices from 0; else as the host
// counts, with CUDA_DEVICE_ORDER saying so.
func Env(devices []Device, container bool) map[string]string {
	env := map[string]string{"GPU_NUM": strconv.Itoa(len(devices))}
	// CUDA takes either all by UUID or all by number.
	byNumber := slices.ContainsFunc(devices, func(d Device) bool { return d.UUID == "" && d.Instance == nil })
	if byNumber {
		env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
	}
	var cuda, nvidia []string
	for i, d := range devices {
		nvidia = append(nvidia, d.ID())
		switch {
		case byNumber && container:
			cuda = append(cuda, strconv.Itoa(i))
		case byNumber:
			cuda = append(cuda, strconv.Itoa(d.Index))
		default:
			cuda = append(cuda, d.ID())
		}
	}
	env["CUDA_VISIBLE_DEVICES"], env["NVIDIA_VISIBLE_DEVICES"] = strings.Join(cuda, ","), strings.Join(nvidia, ",")
	return env
}
