package nvmltest

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"

	"github.com/muster-agent/muster/shim/gpu"
)

func (m *machine) device(i int, d *server.Device) {
	d.UUID, d.Minor = UUID(m.First+i), m.First+i
	name := d.GetNameFunc
	d.GetNameFunc = func() (string, nvml.Return) {
		m.at(gpu.OpInventory)
		return name()
	}
	d.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) {
		return nvml.PciInfo{Bus: busOf(i), PciDeviceId: d.Config.PciDeviceId}, nvml.SUCCESS
	}
	m.memory(i, d)
	m.use(i, d)
	m.health(i, d)
	m.topology(i, d)
	m.processes(i, d)
	m.instances(i, d)
	d.GetSupportedEventTypesFunc = func() (uint64, nvml.Return) { return nvml.EventTypeAll, nvml.SUCCESS }
	d.RegisterEventsFunc = func(uint64, nvml.EventSet) nvml.Return { return nvml.SUCCESS }
}

func busOf(i int) uint32 { return uint32(0x10 + i) }

func (m *machine) memory(i int, d *server.Device) {
	used := uint64(m.UsedMB[i]) << 20
	d.MemoryInfo.Used, d.MemoryInfo.Free = used, d.MemoryInfo.Total-used
	d.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) {
		m.needs("nvmlDeviceGetMemoryInfo_v2")
		return nvml.Memory_v2{Total: d.MemoryInfo.Total, Used: used, Free: d.MemoryInfo.Free}, nvml.SUCCESS
	}
}

func (m *machine) use(i int, d *server.Device) {
	d.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) {
		m.at(gpu.OpLoad)
		m.needs("nvmlDeviceGetUtilizationRates")
		if _, cut := m.MIG[i]; cut {
			return nvml.Utilization{}, nvml.ERROR_NOT_SUPPORTED
		}
		return nvml.Utilization{Gpu: uint32(m.Busy[i])}, nvml.SUCCESS
	}
}

func (m *machine) health(i int, d *server.Device) {
	d.GetTotalEccErrorsFunc = func(nvml.MemoryErrorType, nvml.EccCounterType) (uint64, nvml.Return) {
		m.at(gpu.OpHealth)
		m.needs("nvmlDeviceGetTotalEccErrors")
		return m.DoubleBit[i], nvml.SUCCESS
	}
	d.GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) {
		m.needs("nvmlDeviceGetRemappedRows")
		return 0, 0, slices.Contains(m.RemapPending, i), slices.Contains(m.RemapFailed, i), nvml.SUCCESS
	}
	d.GetRetiredPagesPendingStatusFunc = func() (nvml.EnableState, nvml.Return) {
		m.needs("nvmlDeviceGetRetiredPagesPendingStatus")
		return enabled(slices.Contains(m.RetirePending, i)), nvml.SUCCESS
	}
	d.GetGpuFabricInfoFunc = func() (nvml.GpuFabricInfo, nvml.Return) {
		m.needs("nvmlDeviceGetGpuFabricInfo")
		state := uint8(nvml.GPU_FABRIC_STATE_COMPLETED)
		if slices.Contains(m.FabricPending, i) {
			state = nvml.GPU_FABRIC_STATE_IN_PROGRESS
		}
		return nvml.GpuFabricInfo{State: state}, nvml.SUCCESS
	}
	d.GetFieldValuesFunc = func(fields []nvml.FieldValue) nvml.Return {
		m.needs("nvmlDeviceGetFieldValues")
		for k := range fields {
			fields[k].NvmlReturn = uint32(nvml.ERROR_NOT_SUPPORTED)
			if fields[k].FieldId == nvml.FI_DEV_GET_GPU_RECOVERY_ACTION {
				fields[k].NvmlReturn = uint32(nvml.SUCCESS)
				binary.NativeEndian.PutUint32(fields[k].Value[:4], m.Recovery[i])
			}
		}
		return nvml.SUCCESS
	}
}

func enabled(b bool) nvml.EnableState {
	if b {
		return nvml.FEATURE_ENABLED
	}
	return nvml.EnableState(0)
}

// linksOf is how many links each GPU has; DGX A100 has 12.
const linksOf = 12

func (m *machine) topology(i int, d *server.Device) {
	d.GetMemoryAffinityFunc = func(nodes int, _ nvml.AffinityScope) ([]uint, nvml.Return) {
		m.needs("nvmlDeviceGetMemoryAffinity")
		set := make([]uint, (nodes+63)/64)
		set[0] = 1 << m.half(i)
		return set, nvml.SUCCESS
	}
	d.GetCpuAffinityFunc = func(cpus int) ([]uint, nvml.Return) {
		m.needs("nvmlDeviceGetCpuAffinity")
		set := make([]uint, (cpus+63)/64)
		set[m.half(i)] = math.MaxUint
		return set, nvml.SUCCESS
	}
	d.GetNvLinkStateFunc = func(link int) (nvml.EnableState, nvml.Return) {
		m.needs("nvmlDeviceGetNvLinkState")
		if m.Links == "none" || link >= linksOf {
			return 0, nvml.ERROR_INVALID_ARGUMENT
		}
		return enabled(m.Links != "islands" || m.peerOf(i, link) >= 0), nvml.SUCCESS
	}
	d.GetNvLinkRemotePciInfoFunc = func(link int) (nvml.PciInfo, nvml.Return) {
		m.needs("nvmlDeviceGetNvLinkRemotePciInfo")
		if m.Links == "islands" {
			return nvml.PciInfo{Bus: busOf(m.peerOf(i, link))}, nvml.SUCCESS
		}
		return nvml.PciInfo{Bus: 0xc0 + uint32(link)}, nvml.SUCCESS // a switch
	}
	d.GetNvLinkRemoteDeviceTypeFunc = func(int) (nvml.IntNvLinkDeviceType, nvml.Return) {
		m.needs("nvmlDeviceGetNvLinkRemoteDeviceType")
		return nvml.NVLINK_DEVICE_TYPE_SWITCH, nvml.SUCCESS
	}
	d.GetP2PStatusFunc = func(nvml.Device, nvml.GpuP2PCapsIndex) (nvml.GpuP2PStatus, nvml.Return) {
		m.needs("nvmlDeviceGetP2PStatus")
		return nvml.P2P_STATUS_OK, nvml.SUCCESS
	}
}

// half is the NUMA node and the island.
func (m *machine) half(i int) int { return i * 2 / m.Count }

// peerOf is the GPU at the other end of a direct link; -1: none. The links go round the others of the island.
func (m *machine) peerOf(i, link int) int {
	var others []int
	for j := range m.Count {
		if j != i && m.half(j) == m.half(i) {
			others = append(others, j)
		}
	}
	if len(others) == 0 {
		return -1
	}
	return others[link%len(others)]
}

func (m *machine) processes(i int, d *server.Device) {
	of := func(kind string) []nvml.ProcessInfo {
		var out []nvml.ProcessInfo
		for _, p := range m.Processes[i] {
			if p.Kind == kind {
				used := uint64(math.MaxUint64)
				if p.UsedMB >= 0 {
					used = uint64(p.UsedMB) << 20
				}
				out = append(out, nvml.ProcessInfo{
					Pid: uint32(p.PID), UsedGpuMemory: used,
					GpuInstanceId: uint32(p.GPUInstance),
				})
			}
		}
		return out
	}
	d.GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
		m.at(gpu.OpProcesses)
		return of("compute"), nvml.SUCCESS
	}
	d.GetMPSComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
		m.needs("nvmlDeviceGetMPSComputeRunningProcesses")
		return of("mps"), nvml.SUCCESS
	}
	d.GetGraphicsRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) { return of("graphics"), nvml.SUCCESS }
}

func (m *machine) instances(i int, d *server.Device) {
	count, cut := m.MIG[i]
	if cut {
		d.MigMode = nvml.DEVICE_MIG_ENABLE
	}
	d.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 7, nvml.SUCCESS }
	d.GetMigDeviceHandleByIndexFunc = func(n int) (nvml.Device, nvml.Return) {
		if n >= count {
			return nil, nvml.ERROR_NOT_FOUND
		}
		instance := server.NewDeviceFromConfig(d.Config, n)
		instance.UUID = MIGUUID(m.First+i, n)
		instance.GetGpuInstanceIdFunc = func() (int, nvml.Return) { return n + 1, nvml.SUCCESS }
		instance.GetComputeInstanceIdFunc = func() (int, nvml.Return) { return 0, nvml.SUCCESS }
		instance.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) {
			return nvml.Memory_v2{Total: d.MemoryInfo.Total / 8}, nvml.SUCCESS
		}
		return instance, nvml.SUCCESS
	}
}
