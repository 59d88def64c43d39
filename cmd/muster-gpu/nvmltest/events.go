package nvmltest

import (
	"math"
	"os"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"

	"github.com/muster-agent/muster/shim/gpu"
)

var eventTypes = map[string]uint64{
	gpu.EventXid: nvml.EventTypeXidCriticalError, gpu.EventECC: nvml.EventTypeDoubleBitEccError,
	gpu.EventUnavailable: nvml.EventTypeGpuUnavailableError, gpu.EventRecovery: nvml.EventTypeGpuRecoveryAction,
}

func (m *machine) eventSet() (nvml.EventSet, nvml.Return) {
	m.at(gpu.OpEvents)
	m.fired = make([]bool, len(m.Events))
	return &mock.EventSet{
		FreeFunc: func() nvml.Return { return nvml.SUCCESS },
		WaitFunc: func(ms uint32) (nvml.EventData, nvml.Return) { return m.wait(time.Duration(ms) * time.Millisecond) },
	}, nvml.SUCCESS
}

// wait returns the next event that was fired or whose file has come.
func (m *machine) wait(limit time.Duration) (nvml.EventData, nvml.Return) {
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	end := time.NewTimer(limit)
	defer end.Stop()
	for {
		for i, t := range m.Events {
			if _, err := os.Stat(t.File); err == nil && !m.fired[i] {
				m.fired[i] = true
				return m.happen(t)
			}
		}
		select {
		case t := <-m.Fire:
			return m.happen(t)
		case <-look.C:
		case <-end.C:
			return nvml.EventData{}, nvml.ERROR_TIMEOUT
		}
	}
}

func (m *machine) happen(t Trigger) (nvml.EventData, nvml.Return) {
	if t.Kind == "lost" {
		m.fallen.Store(int64(t.Device) + 1)
		return nvml.EventData{}, nvml.ERROR_GPU_IS_LOST
	}
	data := nvml.EventData{
		Device: m.server.Devices[t.Device], EventType: eventTypes[t.Kind], EventData: uint64(t.Xid),
		GpuInstanceId: math.MaxUint32, ComputeInstanceId: math.MaxUint32,
	}
	if t.GPUInstance != nil {
		data.GpuInstanceId = uint32(*t.GPUInstance)
	}
	return data, nvml.SUCCESS
}
