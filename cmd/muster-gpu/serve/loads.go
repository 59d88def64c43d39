package serve

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/muster-agent/muster/shim/gpu"
)

// loads are how busy each device is. The driver tells the use of whole devices alone, and the memory of instances too.
func (l *library) loads() ([]gpu.Load, error) {
	handles, err := l.handles()
	if err != nil {
		return nil, err
	}
	out := []gpu.Load{}
	for _, h := range handles {
		if h.lost != nvml.SUCCESS {
			continue
		}
		use, ret := ask(l, "nvmlDeviceGetUtilizationRates", h.GetUtilizationRates)
		one := l.load(h, h.uuid)
		if ret == nvml.SUCCESS {
			one.Use = float64(use.Gpu)
		}
		out = append(out, one)
		for _, m := range l.cut(h) {
			if uuid, ret := ask(l, "nvmlDeviceGetUUID", m.GetUUID); ret == nvml.SUCCESS {
				out = append(out, l.load(m, uuid))
			}
		}
	}
	return out, nil
}

// load is that of a device or instance but for its use.
func (l *library) load(h handle, uuid string) gpu.Load {
	out := gpu.Load{ID: uuid, Use: -1, Used: -1, Total: -1}
	if m, known := l.memory(h); known {
		out.Used, out.Total = int64(m.Used), int64(m.Total)
	}
	return out
}
