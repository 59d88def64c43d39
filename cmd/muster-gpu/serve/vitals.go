package serve

import (
	"encoding/binary"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/muster-agent/muster/shim/gpu"
)

// vitals are the facts about each device's health. What a device or library does not tell counts as well.
func (l *library) vitals() ([]gpu.Vitals, error) {
	handles, err := l.handles()
	if err != nil {
		return nil, err
	}
	out := []gpu.Vitals{}
	for _, h := range handles {
		v := gpu.Vitals{Index: h.index, UUID: h.uuid}
		v.ResetRequired = h.lost == nvml.ERROR_RESET_REQUIRED
		v.Lost = h.lost != nvml.SUCCESS && !v.ResetRequired
		if h.lost == nvml.SUCCESS {
			l.examine(h, &v)
		}
		out = append(out, v)
	}
	return out, nil
}

type remapped struct{ pending, failed bool }

func (l *library) examine(h handle, v *gpu.Vitals) {
	errors, ret := ask(l, "nvmlDeviceGetTotalEccErrors", func() (uint64, nvml.Return) {
		return h.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)
	})
	v.ResetRequired = ret == nvml.ERROR_RESET_REQUIRED
	if v.Lost = ret == nvml.ERROR_GPU_IS_LOST; v.Lost {
		return
	}
	if ret == nvml.SUCCESS {
		v.DoubleBitErrors = errors
	}
	rows := or(remapped{})(ask(l, "nvmlDeviceGetRemappedRows", func() (remapped, nvml.Return) {
		_, _, pending, failed, ret := h.GetRemappedRows()
		return remapped{pending, failed}, ret
	}))
	v.RemapPending, v.RemapFailed = rows.pending, rows.failed
	retiring := or(nvml.EnableState(0))(ask(l, "nvmlDeviceGetRetiredPagesPendingStatus",
		h.GetRetiredPagesPendingStatus))
	v.RetirePending = retiring == nvml.FEATURE_ENABLED
	v.Recovery = l.recovery(h)
	fabric, ret := ask(l, "nvmlDeviceGetGpuFabricInfo", h.GetGpuFabricInfo)
	v.FabricPending = ret == nvml.SUCCESS &&
		(fabric.State == nvml.GPU_FABRIC_STATE_NOT_STARTED || fabric.State == nvml.GPU_FABRIC_STATE_IN_PROGRESS)
}

// actions are NVIDIA's recovery actions in words; what a later driver adds is "unknown".
var actions = map[nvml.DeviceGpuRecoveryAction]string{
	nvml.GPU_RECOVERY_ACTION_NONE:                "",
	nvml.GPU_RECOVERY_ACTION_GPU_RESET:           "gpu-reset",
	nvml.GPU_RECOVERY_ACTION_NODE_REBOOT:         "node-reboot",
	nvml.GPU_RECOVERY_ACTION_DRAIN_P2P:           "drain-p2p",
	nvml.GPU_RECOVERY_ACTION_DRAIN_AND_RESET:     "drain-and-reset",
	nvml.GPU_RECOVERY_ACTION_RECOVER_IMEX_DOMAIN: "recover-imex-domain",
	nvml.GPU_RECOVERY_ACTION_BUS_RESET:           "bus-reset",
	nvml.GPU_RECOVERY_ACTION_SYSTEM_REBOOT:       "system-reboot",
}

// recovery is a field, not a function: drivers older than it answer so in the field itself.
func (l *library) recovery(h handle) string {
	fields := []nvml.FieldValue{{FieldId: nvml.FI_DEV_GET_GPU_RECOVERY_ACTION}}
	_, ret := ask(l, "nvmlDeviceGetFieldValues", func() (struct{}, nvml.Return) {
		return struct{}{}, h.GetFieldValues(fields)
	})
	if ret != nvml.SUCCESS || nvml.Return(fields[0].NvmlReturn) != nvml.SUCCESS {
		return ""
	}
	// The value is a union; unsigned int is its first member that these actions come in.
	action, known := actions[nvml.DeviceGpuRecoveryAction(binary.NativeEndian.Uint32(fields[0].Value[:4]))]
	if !known {
		return "unknown"
	}
	return action
}
