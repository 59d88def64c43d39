package serve

import (
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/muster-agent/muster/shim/gpu"
)

// processes are those that use each device, by its UUID.
func (l *library) processes() (map[string][]gpu.Process, error) {
	handles, err := l.handles()
	if err != nil {
		return nil, err
	}
	out := map[string][]gpu.Process{}
	for _, h := range handles {
		if h.lost != nvml.SUCCESS {
			continue
		}
		list := []gpu.Process{}
		for _, q := range []struct {
			symbol, kind string
			call         func() ([]nvml.ProcessInfo, nvml.Return)
		}{
			{"nvmlDeviceGetComputeRunningProcesses", "compute", h.GetComputeRunningProcesses},
			{"nvmlDeviceGetMPSComputeRunningProcesses", "mps", h.GetMPSComputeRunningProcesses},
			{"nvmlDeviceGetGraphicsRunningProcesses", "graphics", h.GetGraphicsRunningProcesses},
		} {
			found := or[[]nvml.ProcessInfo](nil)(ask(l, q.symbol, q.call))
			for _, p := range found {
				list = append(list, process(p, q.kind))
			}
		}
		out[h.uuid] = list
	}
	return out, nil
}

func process(p nvml.ProcessInfo, kind string) gpu.Process {
	used := -1
	if p.UsedGpuMemory != math.MaxUint64 { // NVML_VALUE_NOT_AVAILABLE
		used = int(p.UsedGpuMemory >> 20)
	}
	return gpu.Process{PID: int(p.Pid), UsedMB: used, Kind: kind, GPUInstance: int(int32(p.GpuInstanceId))}
}
