package serve

import (
	"bufio"
	"encoding/json"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/cmd/muster-gpu/nvmltest"
	"github.com/muster-agent/muster/shim/gpu"
)

const watchdog = 30 * time.Second

// served is a server at work.
type served struct {
	t     *testing.T
	in    *io.PipeWriter
	lines chan gpu.Reply
	ended chan error
	id    int64
}

func serving(t *testing.T, h nvmltest.Host) *served {
	t.Helper()
	lib, err := nvmltest.New(h)
	if err != nil {
		t.Fatal(err)
	}
	return servingLib(t, lib)
}

func servingLib(t *testing.T, lib nvml.Interface) *served {
	t.Helper()
	inReader, in := io.Pipe()
	outReader, out := io.Pipe()
	s := &served{t: t, in: in, lines: make(chan gpu.Reply, 100), ended: make(chan error, 1)}
	go func() {
		s.ended <- Serve(lib, inReader, out)
		out.Close()
	}()
	go func() {
		defer close(s.lines)
		lines := bufio.NewScanner(outReader)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var r gpu.Reply
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				t.Errorf("it said %q: %v", lines.Text(), err)
			}
			s.lines <- r
		}
	}()
	t.Cleanup(func() { in.Close() })
	return s
}

func (s *served) next() gpu.Reply {
	s.t.Helper()
	timer := time.NewTimer(watchdog)
	defer timer.Stop()
	select {
	case r, ok := <-s.lines:
		if !ok {
			s.t.Fatal("it said no more")
		}
		return r
	case <-timer.C:
		s.t.Fatalf("nothing within %s", watchdog)
	}
	return gpu.Reply{}
}

func (s *served) ask(op gpu.Op) gpu.Reply {
	s.t.Helper()
	s.id++
	if err := json.NewEncoder(s.in).Encode(gpu.Request{ID: s.id, Op: op}); err != nil {
		s.t.Fatal(err)
	}
	r := s.next()
	if r.ID != s.id {
		s.t.Fatalf("%s: got an answer to %d, want to %d", op, r.ID, s.id)
	}
	return r
}

func (s *served) end() error {
	s.t.Helper()
	timer := time.NewTimer(watchdog)
	defer timer.Stop()
	select {
	case err := <-s.ended:
		return err
	case <-timer.C:
		s.t.Fatalf("it did not end within %s", watchdog)
	}
	return nil
}

func TestHelloAndQuit(t *testing.T) {
	s := serving(t, nvmltest.Host{})
	want := gpu.Hello{Protocol: gpu.Protocol, Driver: "550.54.15", NVML: "12.550.54.15", CUDA: "12.4"}
	if got := s.ask(gpu.OpHello); got.Hello == nil || *got.Hello != want {
		t.Errorf("got %+v", got)
	}
	if got := s.ask("dance"); got.Error == nil || got.Error.Code != gpu.CodeUnknownOp || !strings.Contains(got.Error.Text, `"dance"`) {
		t.Errorf("got %+v", got)
	}
	s.ask(gpu.OpQuit)
	if err := s.end(); err != nil {
		t.Error(err)
	}
}

func TestNoRequest(t *testing.T) {
	s := serving(t, nvmltest.Host{})
	if _, err := io.WriteString(s.in, "\nhello\n"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := s.next(); got.Error == nil || got.ID != 0 {
			t.Errorf("got %+v", got)
		}
	}
	if got := s.ask(gpu.OpHello); got.Hello == nil {
		t.Errorf("it does not go on: %+v", got)
	}
	s.in.Close()
	if err := s.end(); err != nil {
		t.Error(err)
	}
}

func TestNoDriver(t *testing.T) {
	s := serving(t, nvmltest.Host{NoDriver: true})
	got := s.ask(gpu.OpInventory)
	if got.Error == nil || got.Error.Code != gpu.CodeNoDriver || !strings.Contains(got.Error.Text, "driver is not loaded") {
		t.Errorf("got %+v", got)
	}
	if err := s.end(); err == nil {
		t.Error("it ended as if all were well")
	}
}

// The real library, on a machine without one: after a failed Init nothing else may be called.
func TestNoLibrary(t *testing.T) {
	s := servingLib(t, nvml.New(nvml.WithLibraryPath("libno-such-nvml.so.1")))
	got := s.ask(gpu.OpHello)
	if got.Error == nil || got.Error.Code != gpu.CodeNoDriver || !strings.Contains(got.Error.Text, "no NVIDIA driver is installed") {
		t.Errorf("got %+v", got)
	}
	if err := s.end(); err == nil {
		t.Error("it ended as if all were well")
	}
}

func peers(d gpu.Device) []int {
	out := []int{}
	for _, l := range d.Links {
		out = append(out, l.Peer)
	}
	return out
}

func TestInventory(t *testing.T) {
	for model, want := range map[string]struct {
		name   string
		memory int
	}{"a100": {"A100-SXM4-40GB", 40960}, "h100": {"H100 80GB HBM3", 81920}, "h200": {"H200", 144384}, "b200": {"B200", 184320}} {
		got := serving(t, nvmltest.Host{Model: model, UsedMB: map[int]int{3: 700}}).ask(gpu.OpInventory).Inventory
		if got == nil || len(got.Devices) != 8 {
			t.Fatalf("%s: got %+v", model, got)
		}
		d := got.Devices[3]
		if !strings.Contains(d.Name, want.name) || d.MemoryMB < 40000 || d.UsedMB != 700 || d.Index != 3 || d.Minor != 3 || d.UUID != nvmltest.UUID(3) || d.PCI != "0000:13:00.0" {
			t.Errorf("%s: got %+v", model, d)
		}
		if d.NUMA != 0 || got.Devices[4].NUMA != 1 || d.CPUs != "0-63" || got.Devices[4].CPUs != "64-127" {
			t.Errorf("%s: places %+v %+v", model, d, got.Devices[4])
		}
	}
}

func TestLinks(t *testing.T) {
	for _, tt := range []struct {
		links   string
		missing []string
		want    []int // of GPU 1
		count   int
	}{
		{"switch", nil, []int{0, 2, 3, 4, 5, 6, 7}, 12},
		{"islands", nil, []int{0, 2, 3}, 4},
		{"none", nil, []int{}, 0},
		{"switch", []string{"nvmlDeviceGetNvLinkRemoteDeviceType"}, []int{0, 2, 3, 4, 5, 6, 7}, 12},
		{"switch", []string{"nvmlDeviceGetP2PStatus"}, []int{}, 0},
		{"islands", []string{"nvmlDeviceGetNvLinkState"}, []int{}, 0},
		{"islands", []string{"nvmlDeviceGetNvLinkRemotePciInfo"}, []int{}, 0},
	} {
		inv := serving(t, nvmltest.Host{Links: tt.links, Missing: tt.missing}).ask(gpu.OpInventory).Inventory
		d := inv.Devices[1]
		if !slices.Equal(peers(d), tt.want) || len(d.Links) > 0 && d.Links[0].Count != tt.count {
			t.Errorf("%s without %v: got %+v", tt.links, tt.missing, d.Links)
		}
	}
}

func TestMIG(t *testing.T) {
	inv := serving(t, nvmltest.Host{MIG: map[int]int{2: 2, 3: 0}}).ask(gpu.OpInventory).Inventory
	want := []gpu.MIG{
		{UUID: nvmltest.MIGUUID(2, 0), Index: 0, GPUInstance: 1, MemoryMB: 5120}, {UUID: nvmltest.MIGUUID(2, 1), Index: 1, GPUInstance: 2, MemoryMB: 5120},
	}
	if diff := cmp.Diff(want, inv.Devices[2].MIG); diff != "" || !inv.Devices[2].MIGMode {
		t.Errorf("-want +got\n%s", diff)
	}
	if inv.Devices[1].MIGMode || !inv.Devices[3].MIGMode || len(inv.Devices[3].MIG) != 0 {
		t.Errorf("got %+v and %+v", inv.Devices[1], inv.Devices[3])
	}
}

func TestVitals(t *testing.T) {
	h := nvmltest.Host{
		Faults: nvmltest.Faults{
			DoubleBit: map[int]uint64{1: 3}, RemapPending: []int{2}, RemapFailed: []int{3}, RetirePending: []int{4},
			FabricPending: []int{5}, Recovery: map[int]uint32{0: 2, 6: 99}, Lost: []int{7},
		},
	}
	want := []gpu.Vitals{
		{Index: 0, UUID: nvmltest.UUID(0), Recovery: "node-reboot"},
		{Index: 1, UUID: nvmltest.UUID(1), DoubleBitErrors: 3},
		{Index: 2, UUID: nvmltest.UUID(2), RemapPending: true},
		{Index: 3, UUID: nvmltest.UUID(3), RemapFailed: true},
		{Index: 4, UUID: nvmltest.UUID(4), RetirePending: true},
		{Index: 5, UUID: nvmltest.UUID(5), FabricPending: true},
		{Index: 6, UUID: nvmltest.UUID(6), Recovery: "unknown"},
		{Index: 7, Lost: true},
	}
	s := serving(t, h)
	if diff := cmp.Diff(want, s.ask(gpu.OpHealth).Vitals); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if got := s.ask(gpu.OpInventory).Inventory; len(got.Devices) != 8 || got.Devices[7].UUID != "" || got.Devices[7].Index != 7 {
		t.Errorf("a lost device in the inventory: %+v", got.Devices[7])
	}
}

func TestProcesses(t *testing.T) {
	list := []gpu.Process{
		{PID: 11, UsedMB: 500, Kind: "compute", GPUInstance: -1}, {PID: 12, UsedMB: -1, Kind: "mps", GPUInstance: 3}, {PID: 13, UsedMB: 20, Kind: "graphics", GPUInstance: -1},
	}
	got := serving(t, nvmltest.Host{Processes: map[int][]gpu.Process{5: list}}).ask(gpu.OpProcesses).Processes
	if diff := cmp.Diff(list, got[nvmltest.UUID(5)]); diff != "" || len(got) != 8 {
		t.Errorf("%d devices; -want +got\n%s", len(got), diff)
	}
}

func TestLoads(t *testing.T) {
	got := serving(t, nvmltest.Host{
		Count: 4, UsedMB: map[int]int{0: 3}, Busy: map[int]int{0: 97}, MIG: map[int]int{2: 1}, Faults: nvmltest.Faults{Lost: []int{3}},
	}).ask(gpu.OpLoad).Loads
	const all = 40960 << 20
	want := []gpu.Load{
		{ID: nvmltest.UUID(0), Use: 97, Used: 3 << 20, Total: all},
		{ID: nvmltest.UUID(1), Total: all},
		{ID: nvmltest.UUID(2), Use: -1, Total: all},
		{ID: nvmltest.MIGUUID(2, 0), Use: -1, Total: all / 8},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// Symbols that an older library lacks are never called: the mock panics where the loader would end the process.
func TestOldLibrary(t *testing.T) {
	s := serving(t, nvmltest.Host{MIG: map[int]int{0: 1}, Missing: []string{
		"nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetTotalEccErrors", "nvmlDeviceGetRemappedRows", "nvmlDeviceGetRetiredPagesPendingStatus",
		"nvmlDeviceGetGpuFabricInfo", "nvmlDeviceGetFieldValues", "nvmlDeviceGetMemoryAffinity", "nvmlDeviceGetCpuAffinity",
		"nvmlDeviceGetNvLinkState", "nvmlDeviceGetMPSComputeRunningProcesses", "nvmlDeviceGetMigMode",
		"nvmlDeviceGetUtilizationRates",
	}})
	inv := s.ask(gpu.OpInventory).Inventory
	if inv == nil || len(inv.Devices) != 8 || inv.Devices[0].NUMA != -1 || inv.Devices[0].CPUs != "" || inv.Devices[0].MIGMode || inv.Devices[0].MemoryMB != 40960 {
		t.Errorf("got %+v", inv)
	}
	if got := s.ask(gpu.OpHealth); len(got.Vitals) != 8 || got.Vitals[0] != (gpu.Vitals{UUID: nvmltest.UUID(0)}) {
		t.Errorf("got %+v", got)
	}
	if got := s.ask(gpu.OpProcesses); len(got.Processes) != 8 {
		t.Errorf("got %+v", got)
	}
	if got := s.ask(gpu.OpLoad); len(got.Loads) != 8 || got.Loads[0] != (gpu.Load{ID: nvmltest.UUID(0), Use: -1, Total: 40960 << 20}) {
		t.Errorf("got %+v", got)
	}
}

func TestEventsNotThere(t *testing.T) {
	for _, symbol := range []string{"nvmlEventSetWait", "nvmlEventSetCreate", "nvmlDeviceRegisterEvents", "nvmlDeviceGetSupportedEventTypes"} {
		got := serving(t, nvmltest.Host{Missing: []string{symbol}}).ask(gpu.OpEvents)
		if got.Error == nil || got.Error.Code != gpu.CodeNVML {
			t.Errorf("without %s: got %+v", symbol, got)
		}
	}
}

func TestEvents(t *testing.T) {
	fire := make(chan nvmltest.Trigger, 10)
	s := serving(t, nvmltest.Host{Fire: fire, Faults: nvmltest.Faults{Recovery: map[int]uint32{4: 1}}})
	for range 2 { // asked twice, heard once
		if got := s.ask(gpu.OpEvents); got.Error != nil {
			t.Fatal(got.Error)
		}
	}
	for _, tt := range []struct {
		fire nvmltest.Trigger
		want gpu.Event
	}{
		{nvmltest.Trigger{Device: 3, Kind: gpu.EventXid, Xid: 79}, gpu.Event{Kind: gpu.EventXid, Device: nvmltest.UUID(3), Index: 3, Xid: 79}},
		{nvmltest.Trigger{Device: 4, Kind: gpu.EventRecovery}, gpu.Event{Kind: gpu.EventRecovery, Device: nvmltest.UUID(4), Index: 4, Recovery: "gpu-reset"}},
		{nvmltest.Trigger{Device: 5, Kind: gpu.EventECC}, gpu.Event{Kind: gpu.EventECC, Device: nvmltest.UUID(5), Index: 5}},
		{nvmltest.Trigger{Device: 6, Kind: gpu.EventUnavailable}, gpu.Event{Kind: gpu.EventUnavailable, Device: nvmltest.UUID(6), Index: 6}},
		{
			nvmltest.Trigger{Device: 3, Kind: gpu.EventXid, Xid: 31, GPUInstance: new(2)},
			gpu.Event{Kind: gpu.EventXid, Device: nvmltest.UUID(3), Index: 3, Xid: 31, GPUInstance: new(2)},
		},
		{nvmltest.Trigger{Device: 2, Kind: "lost"}, gpu.Event{Kind: gpu.EventUnavailable, Device: nvmltest.UUID(2), Index: 2, Text: "the GPU is lost"}},
	} {
		fire <- tt.fire
		if got := s.next(); got.Event == nil || !reflect.DeepEqual(*got.Event, tt.want) {
			t.Errorf("got %+v, want %+v", got.Event, tt.want)
		}
	}
	if got := s.ask(gpu.OpProcesses); len(got.Processes) != 7 { // one is lost
		t.Errorf("requests beside events: got %+v", got)
	}
	s.in.Close()
	if err := s.end(); err != nil {
		t.Error(err)
	}
}

// The agent is gone while NVML hangs: so must the helper be.
func TestEndWhileNVMLHangs(t *testing.T) {
	s := serving(t, nvmltest.Host{Hang: gpu.OpProcesses, Once: filepath.Join(t.TempDir(), "once")})
	if err := json.NewEncoder(s.in).Encode(gpu.Request{ID: 1, Op: gpu.OpProcesses}); err != nil {
		t.Fatal(err)
	}
	s.in.Close()
	if err := s.end(); err == nil || !strings.Contains(err.Error(), "does not return") {
		t.Errorf("got %v", err)
	}
}

func TestList(t *testing.T) {
	for want, set := range map[string][]uint{
		"": {0}, "0": {1}, "0-1,3": {0b1011}, "63-64": {1 << 63, 1}, "0-127": {^uint(0), ^uint(0)}, "2,66": {4, 4},
	} {
		if got := list(set); got != want {
			t.Errorf("%b: got %q, want %q", set, got, want)
		}
	}
}
