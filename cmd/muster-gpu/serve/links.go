package serve

import (
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/muster-agent/muster/shim/gpu"
)

// links are each device's NVLink peers. A link that ends at another GPU counts for it; links that end at a switch
// count for every GPU that also has some there and that the driver calls a peer over NVLink.
func (l *library) links(handles []handle) [][]gpu.Link {
	at := map[string]int{} // PCI address → position
	for i, h := range handles {
		if h.lost != nvml.SUCCESS {
			continue
		}
		if pci, ret := ask(l, "nvmlDeviceGetPciInfo", h.GetPciInfo); ret == nvml.SUCCESS {
			at[address(pci)] = i
		}
	}
	direct, switched := make([]map[int]int, len(handles)), make([]int, len(handles))
	for i, h := range handles {
		direct[i] = map[int]int{}
		if h.lost == nvml.SUCCESS {
			switched[i] = l.count(h, at, direct[i])
		}
	}
	out := make([][]gpu.Link, len(handles))
	for i := range handles {
		for j := range handles {
			count := direct[i][j]
			if i != j && count == 0 && switched[i] > 0 && switched[j] > 0 && l.peers(handles[i], handles[j]) {
				count = min(switched[i], switched[j])
			}
			if count > 0 {
				out[i] = append(out[i], gpu.Link{Peer: handles[j].index, Count: count})
			}
		}
		slices.SortFunc(out[i], func(a, b gpu.Link) int { return a.Peer - b.Peer })
	}
	return out
}

// count adds a device's links to the GPUs at their other ends, and returns how many end at switches.
func (l *library) count(h handle, at map[string]int, direct map[int]int) int {
	switches := 0
	for link := range nvml.NVLINK_MAX_LINKS {
		state, ret := ask(l, "nvmlDeviceGetNvLinkState", func() (nvml.EnableState, nvml.Return) {
			return h.GetNvLinkState(link)
		})
		if ret != nvml.SUCCESS || state != nvml.FEATURE_ENABLED {
			continue
		}
		remote, ret := ask(l, "nvmlDeviceGetNvLinkRemotePciInfo", func() (nvml.PciInfo, nvml.Return) {
			return h.GetNvLinkRemotePciInfo(link)
		})
		if ret != nvml.SUCCESS {
			continue
		}
		if peer, ok := at[address(remote)]; ok {
			direct[peer]++
		} else if l.toSwitch(h, link) {
			switches++
		}
	}
	return switches
}

// toSwitch tells that the link ends at a switch: so it does if it ends at no GPU that we see and the library is too
// old to tell.
func (l *library) toSwitch(h handle, link int) bool {
	kind, ret := ask(l, "nvmlDeviceGetNvLinkRemoteDeviceType", func() (nvml.IntNvLinkDeviceType, nvml.Return) {
		return h.GetNvLinkRemoteDeviceType(link)
	})
	return ret != nvml.SUCCESS || kind == nvml.NVLINK_DEVICE_TYPE_SWITCH
}

func (l *library) peers(a, b handle) bool {
	status, ret := ask(l, "nvmlDeviceGetP2PStatus", func() (nvml.GpuP2PStatus, nvml.Return) {
		return a.GetP2PStatus(b.Device, nvml.P2P_CAPS_INDEX_NVLINK)
	})
	return ret == nvml.SUCCESS && status == nvml.P2P_STATUS_OK
}
