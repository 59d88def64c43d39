package gpu

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// host is 8 GPUs of one model in two islands of direct NVLinks, each on a NUMA node of its own.
func host(change ...func([]Device)) []Device {
	var out []Device
	for i := range 8 {
		d := Device{Index: i, Minor: i, UUID: fmt.Sprintf("GPU-%d%d%d%d-x", i, i, i, i), Name: "NVIDIA A100-SXM4-40GB", NUMA: i / 4, MemoryMB: 40960}
		for j := range 8 {
			if i != j && i/4 == j/4 {
				d.Links = append(d.Links, Link{Peer: j, Count: 4})
			}
		}
		out = append(out, d)
	}
	for _, f := range change {
		f(out)
	}
	return out
}

func busy(indices ...int) map[string]bool {
	out := map[string]bool{}
	for _, i := range indices {
		out[host()[i].UUID] = true
	}
	return out
}

func used(mb map[int]int) func([]Device) {
	return func(d []Device) {
		for i, n := range mb {
			d[i].UsedMB = n
		}
	}
}

func indices(devices []Device) []int {
	out := []int{}
	for _, d := range devices {
		out = append(out, d.Index)
	}
	return out
}

func TestChoose(t *testing.T) {
	noLinks := func(d []Device) {
		for i := range d {
			d[i].Links = nil
		}
	}
	ring := func(d []Device) { // pairs are joined doubly, neighbours singly
		noLinks(d)
		for i := range d {
			d[i].Links = []Link{{Peer: i ^ 1, Count: 2}, {Peer: (i + 3) % 8, Count: 1}}
		}
	}
	mixed := func(d []Device) {
		for _, i := range []int{0, 5, 6} {
			d[i].Name, d[i].Links = "Tesla V100-PCIE-16GB", nil
		}
	}
	broken := func(d []Device) {
		d[1].Health = []Finding{{What: "row remapping pending", Class: ResetGPU}}
		d[2].Health = []Finding{{What: "a trifle", Class: Ignore}}
	}
	cut := func(d []Device) {
		d[0].MIGMode = true
		d[0].MIG = []MIG{{UUID: "MIG-a", Index: 0, GPUInstance: 1, MemoryMB: 5120}, {UUID: "MIG-b", Index: 1, GPUInstance: 2}}
		d[0].Processes = []Process{{PID: 7, GPUInstance: 1}, {PID: 8, GPUInstance: 2}}
	}
	shut := func(d []Device) {
		for _, i := range []int{0, 1, 2, 3, 6} {
			d[i].Closed = true
		}
		d[5].Minor, d[6].Minor = 6, 5
	}
	for _, tt := range []struct {
		name    string
		devices []Device
		want    Want
		got     []int
	}{
		{"none that the launcher's cgroup has closed", host(shut), Want{Count: 2}, []int{4, 5}},
		{"a grant by device node, which is no index", host(shut), Want{Count: 1, Granted: []string{"/dev/nvidia6"}}, []int{5}},
		{"none", host(), Want{}, []int{}},
		{"one", host(), Want{Count: 1}, []int{0}},
		{"all", host(), Want{Count: 8}, []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{"four are one island", host(), Want{Count: 4, Busy: busy(1)}, []int{4, 5, 6, 7}},
		{"two stay in the island that is already broken into", host(), Want{Count: 2, Busy: busy(1)}, []int{0, 2}},
		{"one takes from the smaller rest", host(), Want{Count: 1, Busy: busy(4, 5, 6)}, []int{7}},
		{"NVLink before memory", host(used(map[int]int{0: 9000, 1: 9000, 2: 9000, 4: 9000, 5: 9000, 6: 9000})), Want{Count: 2}, []int{0, 3}},
		{"least memory", host(used(map[int]int{0: 900, 1: 600, 2: 0, 3: 700, 4: 5000, 5: 5000, 6: 5000, 7: 5000})), Want{Count: 1}, []int{2}},
		{"the driver's noise is no use", host(used(map[int]int{0: 200})), Want{Count: 1}, []int{0}},
		{"more than an island: as many pairs as can be", host(), Want{Count: 5, Busy: busy(0)}, []int{1, 4, 5, 6, 7}},
		{"NUMA without NVLink", host(noLinks), Want{Count: 3, Busy: busy(0, 1)}, []int{4, 5, 6}},
		{"NUMA before memory", host(noLinks, used(map[int]int{0: 4000, 1: 4000, 4: 4000, 5: 4000})), Want{Count: 3, Busy: busy(3, 7)}, []int{0, 1, 2}},
		{"the doubly joined pair", host(ring), Want{Count: 2, Busy: busy(0)}, []int{2, 3}},
		{"of a type", host(mixed), Want{Count: 2, Type: "v100"}, []int{5, 6}},
		{"one model rather than two", host(mixed), Want{Count: 3, Busy: busy(1)}, []int{2, 3, 4}},
		{"sick ones are left out", host(broken), Want{Count: 3, Busy: busy(4, 5, 6)}, []int{0, 2, 3}},
		{"MIG hosts are left out", host(cut), Want{Count: 1}, []int{1}},
		{"a grant by index", host(), Want{Count: 2, Granted: []string{"6", "1"}}, []int{6, 1}},
		{"a grant by UUID and its beginning", host(), Want{Count: 2, Granted: []string{"GPU-3333-x", "GPU-5555"}}, []int{3, 5}},
		{"a grant by CDI name", host(), Want{Count: 1, Granted: []string{"nvidia.com/gpu=4"}}, []int{4}},
		{"a grant without a count", host(), Want{Granted: []string{"7", "7"}}, []int{7}},
		{"a grant stands though busy", host(), Want{Count: 1, Granted: []string{"2"}, Busy: busy(2)}, []int{2}},
		{"a part of a larger grant", host(), Want{Count: 2, Granted: []string{"0", "4", "5"}}, []int{4, 5}},
		{"not the busy one of it", host(), Want{Count: 1, Granted: []string{"0", "4"}, Busy: busy(0)}, []int{4}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Choose(tt.devices, tt.want)
			if err != nil || !slices.Equal(indices(got), tt.got) {
				t.Errorf("got %v (%v), want %v", indices(got), err, tt.got)
			}
		})
	}
	t.Run("a MIG instance", func(t *testing.T) {
		for _, name := range []string{"MIG-a", "0:0"} {
			got, err := Choose(host(cut), Want{Count: 1, Granted: []string{name}})
			if err != nil || len(got) != 1 || got[0].ID() != "MIG-a" || got[0].MemoryMB != 5120 || len(got[0].Processes) != 1 || got[0].Processes[0].PID != 7 {
				t.Errorf("%s: got %+v (%v)", name, got, err)
			}
		}
	})
	t.Run("an unlisted MIG instance", func(t *testing.T) {
		got, err := Choose(nil, Want{Count: 1, Type: "A100", Granted: []string{"MIG-zzz"}})
		if err != nil || len(got) != 1 || got[0].ID() != "MIG-zzz" {
			t.Errorf("got %+v (%v)", got, err)
		}
	})
}

func TestChooseErrors(t *testing.T) {
	broken := func(d []Device) {
		d[5].Health = []Finding{{What: "row remapping pending", Class: ResetGPU}}
		d[6].MIGMode = true
		d[7].Name = "Tesla V100-PCIE-16GB"
	}
	closed := host()[:1]
	closed[0].Closed = true
	for _, tt := range []struct {
		name    string
		devices []Device
		want    Want
		is      error
		text    string
	}{
		{"nothing there", nil, Want{Count: 1}, ErrTooFew, "not enough GPUs: want 1, free 0: this host has none"},
		{
			"all closed",
			closed,
			Want{Count: 1},
			ErrTooFew,
			"not enough GPUs: want 1, free 0: 1 × NVIDIA A100-SXM4-40GB (GPU 0 closed to this agent by its launcher's cgroup)",
		},
		{
			"granted and closed",
			closed,
			Want{Count: 1, Granted: []string{"0"}},
			errNotThere,
			"no such GPU: the launcher granted 0, and its cgroup keeps this agent off it",
		},
		{
			"a node that is not there",
			closed,
			Want{Count: 1, Granted: []string{"/dev/nvidia7"}},
			errNotThere,
			"no such GPU: the launcher granted /dev/nvidia7: this host has GPU 0 (GPU-0000-x, NVIDIA A100-SXM4-40GB)",
		},
		{
			"too few",
			host(broken),
			Want{Count: 6, Type: "A100", Busy: busy(0, 2)},
			ErrTooFew,
			"not enough GPUs: want 6 of type A100, free 3: 7 × NVIDIA A100-SXM4-40GB (GPU 0, 2 held by another agent; GPU 5 row remapping pending; " +
				"GPU 6 cut into MIG instances, which only a launcher can grant), 1 × Tesla V100-PCIE-16GB",
		},
		{"no such type", host(), Want{Count: 1, Type: "H100"}, ErrTooFew, "not enough GPUs: want 1 of type H100, free 0: 8 × NVIDIA A100-SXM4-40GB"},
		{"granted too few", host(), Want{Count: 2, Granted: []string{"3"}}, ErrTooFew, "not enough GPUs: want 2 out of the launcher's 3, free 1: 1 × NVIDIA A100-SXM4-40GB"},
		{
			"granted the wrong type",
			host(),
			Want{Count: 1, Type: "V100", Granted: []string{"3"}},
			ErrTooFew,
			"not enough GPUs: want type V100, and the launcher granted GPU 3 (GPU-3333-x, NVIDIA A100-SXM4-40GB)",
		},
		{
			"granted what is not there",
			host()[:1],
			Want{Count: 1, Granted: []string{"9"}},
			errNotThere,
			"no such GPU: the launcher granted 9: this host has GPU 0 (GPU-0000-x, NVIDIA A100-SXM4-40GB)",
		},
		{"ambiguous", append(host()[:1], host()[:1]...), Want{Count: 1, Granted: []string{"GPU-0000"}}, errNotThere, "no such GPU: the launcher granted GPU-0000: "},
		{"empty", host(), Want{Count: 1, Granted: []string{"GPU-"}}, errNotThere, "no such GPU: the launcher granted GPU-: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Choose(tt.devices, tt.want)
			if !errors.Is(err, tt.is) || !strings.HasPrefix(fmt.Sprint(err), tt.text) {
				t.Errorf("got %v\nwant %s", err, tt.text)
			}
		})
	}
}

// Whatever is asked for: as many as asked, each once, none busy, and no better set was left.
func TestChooseLaws(t *testing.T) {
	devices := host(used(map[int]int{1: 3000, 6: 800}))
	for mask := range 256 {
		taken := map[string]bool{}
		free := 0
		for i, d := range devices {
			if mask>>i&1 == 1 {
				taken[d.UUID] = true
			} else {
				free++
			}
		}
		for count := 1; count <= 8; count++ {
			got, err := Choose(devices, Want{Count: count, Busy: taken})
			if (err != nil) != (count > free) {
				t.Fatalf("%d of %d free: %v", count, free, err)
			}
			if err != nil {
				continue
			}
			seen := map[string]bool{}
			for _, d := range got {
				if seen[d.UUID] || taken[d.UUID] {
					t.Fatalf("mask %08b, %d: got %v", mask, count, indices(got))
				}
				seen[d.UUID] = true
			}
			if len(got) != count {
				t.Fatalf("mask %08b: got %v, want %d", mask, indices(got), count)
			}
			first := slices.ContainsFunc([]int{0, 4}, func(start int) bool {
				n := 0
				for i := start; i < start+4; i++ {
					n += 1 - mask>>i&1
				}
				return n >= count
			})
			if first && got[0].NUMA != got[count-1].NUMA {
				t.Fatalf("mask %08b: %v is spread though an island has %d free", mask, indices(got), count)
			}
		}
	}
}

func TestChooseAmongMany(t *testing.T) {
	var devices []Device
	for i := range 64 {
		devices = append(devices, Device{Index: i, Minor: i, UUID: fmt.Sprint("GPU-", i), NUMA: -1, UsedMB: (63 - i) * 1000})
	}
	got, err := Choose(devices, Want{Count: 2})
	if err != nil || !slices.Equal(indices(got), []int{62, 63}) {
		t.Errorf("got %v (%v)", indices(got), err)
	}
	if got, err := Choose(devices, Want{Count: 40}); err != nil || len(got) != 40 {
		t.Errorf("got %d (%v)", len(got), err)
	}
}

func TestMatches(t *testing.T) {
	for _, tt := range []struct {
		want, model string
		ok          bool
	}{
		{"", "anything", true},
		{"A100", "NVIDIA A100-SXM4-40GB", true},
		{"a100 sxm4", "NVIDIA A100-SXM4-40GB", true},
		{"nvidia-a100-sxm4-40gb", "NVIDIA A100-SXM4-40GB", true},
		{"Tesla V100", "NVIDIA V100-PCIE", true},
		{"GTX 1080 Ti", "NVIDIA GeForce GTX 1080 Ti", true},
		{"GeForce-RTX3090", "GeForce RTX 3090", true},
		{"A100-80GB", "NVIDIA A100-SXM4-80GB", false},
		{"A10", "NVIDIA A100-SXM4-40GB", true}, // a substring, as the manual says
		{"H100", "NVIDIA A100-SXM4-40GB", false},
	} {
		if got := matches(tt.want, tt.model); got != tt.ok {
			t.Errorf("%q in %q: got %v", tt.want, tt.model, got)
		}
	}
}

func TestEnv(t *testing.T) {
	two := host()[2:4]
	plain := []Device{{Index: 2, Minor: 2}, {Index: 5, Minor: 5}}
	mig := []Device{{Index: 0, UUID: "GPU-a", Instance: &MIG{UUID: "MIG-a"}}}
	for _, tt := range []struct {
		name      string
		devices   []Device
		container bool
		want      string
	}{
		{"by UUID", two, false, "CUDA_VISIBLE_DEVICES=GPU-2222-x,GPU-3333-x GPU_NUM=2 NVIDIA_VISIBLE_DEVICES=GPU-2222-x,GPU-3333-x"},
		{"by UUID in a container", two, true, "CUDA_VISIBLE_DEVICES=GPU-2222-x,GPU-3333-x GPU_NUM=2 NVIDIA_VISIBLE_DEVICES=GPU-2222-x,GPU-3333-x"},
		{"by the host's number", plain, false, "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=2,5 GPU_NUM=2 NVIDIA_VISIBLE_DEVICES=2,5"},
		{"by the container's number", plain, true, "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0,1 GPU_NUM=2 NVIDIA_VISIBLE_DEVICES=2,5"},
		{"never both", []Device{two[0], plain[1]}, false, "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=2,5 GPU_NUM=2 NVIDIA_VISIBLE_DEVICES=GPU-2222-x,5"},
		{"MIG", mig, true, "CUDA_VISIBLE_DEVICES=MIG-a GPU_NUM=1 NVIDIA_VISIBLE_DEVICES=MIG-a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for name, value := range Env(tt.devices, tt.container) {
				got = append(got, name+"="+value)
			}
			slices.Sort(got)
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("got %s, want %s", text, tt.want)
			}
		})
	}
}
