//go:build gpu

package gpu_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/gpu"
)

// actual is the host's inventory by the real helper. No GPU is a failure here: the tag asks for one.
func actual(t *testing.T) gpu.Inventory {
	t.Helper()
	if !hasDriver() {
		t.Fatal("no NVIDIA driver on this machine: nothing of this can be tested here")
	}
	inv, err := opened(t, built(t)).Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(inv.Devices) == 0 {
		t.Fatal("a driver, but no GPU")
	}
	return inv
}

// smi asks nvidia-smi, one slice of fields per GPU.
func smi(t *testing.T, fields string, args ...string) [][]string {
	t.Helper()
	args = append(args, "--query-gpu="+fields, "--format=csv,noheader,nounits")
	out, err := exec.CommandContext(t.Context(), "nvidia-smi", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("nvidia-smi %s: %v\n%s", args, err, out)
	}
	var rows [][]string
	for line := range strings.Lines(strings.TrimSpace(string(out))) {
		row := strings.Split(strings.TrimSpace(line), ", ")
		rows = append(rows, row)
	}
	return rows
}

func TestRealInventory(t *testing.T) {
	inv := actual(t)
	t.Logf("driver %s, NVML %s, CUDA %s, %d GPUs", inv.Driver, inv.NVML, inv.CUDA, len(inv.Devices))
	rows := smi(t, "index,uuid,name,memory.total,pci.bus_id,driver_version")
	if len(rows) != len(inv.Devices) {
		t.Fatalf("got %d devices, nvidia-smi has %d", len(inv.Devices), len(rows))
	}
	for i, d := range inv.Devices {
		t.Logf("%s: %s, %d of %d MB used, NUMA %d, CPUs %s, links %v, MIG %v", d, d.PCI, d.UsedMB, d.MemoryMB, d.NUMA, d.CPUs, d.Links, d.MIG)
		r := rows[i]
		total, err := strconv.Atoi(r[3])
		if err != nil {
			t.Fatal(err)
		}
		// nvidia-smi writes 00000000:1B:00.0.
		if strconv.Itoa(d.Index) != r[0] || d.UUID != r[1] || d.Name != r[2] || d.MemoryMB != total ||
			!strings.HasSuffix(strings.ToLower(r[4]), d.PCI) || inv.Driver != r[5] {
			t.Errorf("got %+v, nvidia-smi says %q", d, r)
		}
	}
	for _, f := range gpu.Gate(inv.Devices, gpu.Policy{}) {
		t.Logf("gate: %s", f)
	}
}

// The device nodes alone tell the same devices in the same order.
func TestRealNodes(t *testing.T) {
	inv := actual(t)
	nodes, err := gpu.NodesInventory("/")
	if err != nil {
		t.Fatal(err)
	}
	if nodes.Driver != inv.Driver {
		t.Errorf("driver: got %q, want %q", nodes.Driver, inv.Driver)
	}
	byMinor := map[int]gpu.Device{}
	for _, d := range inv.Devices {
		byMinor[d.Minor] = d
	}
	found := 0
	for _, d := range nodes.Devices {
		want, ok := byMinor[d.Minor]
		if !ok {
			continue // another tenant's, whose node is here and whose use is not permitted
		}
		found++
		if d.UUID != "" && d.UUID != want.UUID || d.PCI != "" && d.PCI != want.PCI {
			t.Errorf("by nodes %+v, by NVML %+v", d, want)
		}
	}
	if found != len(inv.Devices) {
		t.Errorf("%d of %d devices have nodes", found, len(inv.Devices))
	}
}

func TestRealClaim(t *testing.T) {
	inv := actual(t)
	var fit []gpu.Device
	for _, d := range inv.Devices {
		if len(gpu.Gate([]gpu.Device{d}, gpu.Policy{Shared: true})) == 0 && !d.MIGMode {
			fit = append(fit, d)
		}
	}
	if len(fit) == 0 {
		t.Fatal("no GPU is fit for use")
	}
	held, err := gpu.Claim(t.Context(), fit, gpu.Want{Count: 1, Type: fit[0].Name})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := held.Release(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := gpu.Claim(t.Context(), held.Devices, gpu.Want{Count: 1}); !errors.Is(err, gpu.ErrTooFew) {
		t.Errorf("a second claim: got %v, want ErrTooFew", err)
	}
	env := gpu.Env(held.Devices, true)
	rows := smi(t, "uuid", "--id="+env["CUDA_VISIBLE_DEVICES"])
	if env["GPU_NUM"] != "1" || len(rows) != 1 || rows[0][0] != held.Devices[0].UUID {
		t.Errorf("%v: nvidia-smi has %v", env, rows)
	}
	for _, image := range []bool{false, true} {
		in, err := gpu.Inject(t.Context(), held.Devices, gpu.InjectOptions{Image: image})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("image %v: %s: %d nodes, %d mounts, %d hooks, folders %v, warnings %q", image, in.Source, len(in.Nodes), len(in.Mounts), len(in.Hooks), in.LibraryDirs, in.Warnings)
		own := 0
		for _, n := range in.Nodes {
			if strings.HasPrefix(n.Path, "/dev/nvidia") && n.Major == 195 && n.Minor < 250 {
				own++
			}
		}
		if own != 1 || image && len(in.Mounts) == 0 {
			t.Errorf("image %v: got %+v", image, in)
		}
	}
}

func TestRealEvents(t *testing.T) {
	if !hasDriver() {
		t.Fatal("no NVIDIA driver on this machine: nothing of this can be tested here")
	}
	cmd := exec.CommandContext(t.Context(), built(t))
	cmd.Stdin = strings.NewReader(`{"id":1,"op":"events"}` + "\n" + `{"id":2,"op":"processes"}` + "\n" + `{"id":3,"op":"quit"}` + "\n")
	var words bytes.Buffer
	cmd.Stderr = &words
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &words)
	}
	for line := range bytes.Lines(out) {
		var r gpu.Reply
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if r.Error != nil {
			t.Errorf("request %d: %s", r.ID, r.Error.Text)
		}
	}
}
