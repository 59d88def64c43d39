package gpu

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/tests/need"
)

// nvidiaMajor is the number that NVIDIA's nodes have everywhere; nvidia-uvm's is given out at its load.
const (
	nvidiaMajor = 195
	uvmMajor    = 511
)

// driverRoot is a host's root with a driver and two GPUs; minor 1 comes first by PCI address.
func driverRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for path, number := range map[string][2]uint32{
		"nvidia0": {nvidiaMajor, 0}, "nvidia1": {nvidiaMajor, 1}, "nvidiactl": {nvidiaMajor, 255}, "nvidia-modeset": {nvidiaMajor, 254},
		"nvidia-uvm": {uvmMajor, 0}, "nvidia-uvm-tools": {uvmMajor, 1}, "nvidia-caps/nvidia-cap30": {237, 30}, "nvidia-caps/nvidia-cap31": {237, 31},
	} {
		makeNode(t, filepath.Join(root, "dev", path), number[0], number[1])
	}
	writeFile(t, filepath.Join(root, "dev/nvidia-caps/README"), "")
	for minor, pci := range []string{"0000:3b:00.0", "0000:1b:00.0"} {
		writeFile(t, filepath.Join(root, "proc/driver/nvidia/gpus", pci, "information"), fmt.Sprintf(
			"Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ:   \t\t 16\nGPU UUID: \t GPU-%d\nVideo BIOS: \t 92.00\nBus Type: \t PCIe\nBus Location: \t %s\nDevice Minor: \t %d\n",
			minor, strings.ToUpper(pci), minor))
		writeFile(t, filepath.Join(root, "sys/bus/pci/devices", pci, "numa_node"), "-1\n")
	}
	writeFile(t, filepath.Join(root, "proc/driver/nvidia/version"),
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\nGCC version:  gcc 12\n")
	for gi, ci := range map[string]string{"gi1/access": "30", "gi1/ci0/access": "31"} {
		writeFile(t, filepath.Join(root, "proc/driver/nvidia/capabilities/gpu0/mig", gi), "DeviceFileMinor: "+ci+"\nDeviceFileMode: 292\nDeviceFileModify: 1\n")
	}
	return root
}

func makeNode(t *testing.T, path string, major, minor uint32) {
	t.Helper()
	need.Root(t)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(major, minor))); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestNodes(t *testing.T) {
	inv, err := NodesInventory(driverRoot(t))
	if err != nil {
		t.Fatal(err)
	}
	if inv.Driver != "550.54.15" || inv.Source != "device nodes" || len(inv.Devices) != 2 {
		t.Fatalf("got %+v", inv)
	}
	for i, want := range []Device{
		{Index: 0, Minor: 1, UUID: "GPU-1", Name: "NVIDIA A100-SXM4-40GB", PCI: "0000:1b:00.0", NUMA: -1},
		{Index: 1, Minor: 0, UUID: "GPU-0", Name: "NVIDIA A100-SXM4-40GB", PCI: "0000:3b:00.0", NUMA: -1},
	} {
		if got := inv.Devices[i]; fmt.Sprint(got) != fmt.Sprint(want) || got.Minor != want.Minor || got.PCI != want.PCI {
			t.Errorf("%d: got %+v, want %+v", i, got, want)
		}
	}
}

func TestNodesAlone(t *testing.T) {
	root := t.TempDir()
	if got, err := nodeDevices(root); err != nil || len(got) != 0 {
		t.Errorf("no /dev: got %v (%v)", got, err)
	}
	for _, name := range []string{"nvidia10", "nvidia2", "nvidiactl", "nvidia-uvm", "nvidia", "nvidia1x", "null"} {
		writeFile(t, filepath.Join(root, "dev", name), "")
	}
	got, err := nodeDevices(root)
	if err != nil || len(got) != 2 || got[0].Minor != 2 || got[0].Index != 0 || got[1].Minor != 10 || got[1].NUMA != -1 || got[0].UUID != "" {
		t.Errorf("got %+v (%v)", got, err)
	}
}

// Device rules of a cgroup close a device, and nothing opens it to find that out.
func TestNodesClosedByACgroup(t *testing.T) {
	const devices = "/sys/fs/cgroup/devices"
	if _, err := os.Stat(filepath.Join(devices, "tasks")); err != nil {
		need.Skip(t, "needs the devices of cgroup v1: "+err.Error())
	}
	root := driverRoot(t)
	group, err := os.MkdirTemp(devices, "muster-test-") //nolint:usetesting // a cgroup
	if err != nil {
		need.Skip(t, "needs a cgroup that it may make: "+err.Error())
	}
	found := make(chan []Device)
	go func() {
		defer close(found)
		runtime.LockOSThread() // and never unlocked: the thread goes, and leaves the cgroup so
		rule, thread := fmt.Sprintf("c %d:0 rwm", nvidiaMajor), strconv.Itoa(unix.Gettid())
		if err := errors.Join(os.WriteFile(filepath.Join(group, "devices.deny"), []byte(rule), 0),
			os.WriteFile(filepath.Join(group, "tasks"), []byte(thread), 0)); err != nil {
			t.Error(err)
		}
		all, err := nodeDevices(root)
		if err != nil {
			t.Error(err)
		}
		found <- all
		if err := os.WriteFile(filepath.Join(devices, "tasks"), []byte(thread), 0); err != nil {
			t.Error(err)
		}
	}()
	for _, d := range <-found {
		if want := d.Minor == 0; d.Closed != want {
			t.Errorf("%s is closed: %t, want %t", d, d.Closed, want)
		}
	}
	<-found // the thread has left it
	if err := os.Remove(group); err != nil {
		t.Error(err)
	}
}

func TestParseInformation(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       Device
		ok         bool
	}{
		{"never used", "Model: Unknown\nGPU UUID: \t GPU-????????-????\nDevice Minor: 3\n", Device{Minor: 3, NUMA: -1}, true},
		{"no minor", "Model: NVIDIA T4\n", Device{Name: "NVIDIA T4", Minor: -1, NUMA: -1}, false},
		{"empty", "", Device{Minor: -1, NUMA: -1}, false},
	} {
		if got, ok := parseInformation(tt.text); fmt.Sprint(got, ok) != fmt.Sprint(tt.want, tt.ok) || got.Minor != tt.want.Minor {
			t.Errorf("%s: got %+v %v", tt.name, got, ok)
		}
	}
}

func TestDriverVersion(t *testing.T) {
	for text, want := range map[string]string{
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5\n":                          "550.54.15",
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (dvs-builder)": "580.95.05",
		"NVRM version: NVIDIA UNIX Kernel Module  470.82  Wed":                                             "470.82",
		"something else": "",
	} {
		root := t.TempDir()
		writeFile(t, filepath.Join(root, "proc/driver/nvidia/version"), text)
		if got := driverVersion(root); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := driverVersion(t.TempDir()); got != "" {
		t.Errorf("no driver: got %q", got)
	}
}

// The loader's cache of this machine, as ldconfig reads it.
func TestParseLoaderCache(t *testing.T) {
	data, err := os.ReadFile("/etc/ld.so.cache")
	if err != nil {
		need.Skip(t, err.Error())
	}
	got, err := parseLoaderCache(data)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "/sbin/ldconfig", "-p").Output()
	if err != nil {
		need.Skip(t, err.Error())
	}
	line := regexp.MustCompile(`(?m)^\t(\S+) \(.*\) => (\S+)$`)
	var want, have []string
	for _, m := range line.FindAllStringSubmatch(string(out), -1) {
		want = append(want, m[1]+" "+m[2])
	}
	for _, e := range got {
		have = append(have, e.name+" "+e.path)
	}
	slices.Sort(want)
	slices.Sort(have)
	if len(have) == 0 || !slices.Equal(have, want) {
		t.Errorf("got %d libraries, ldconfig -p has %d", len(have), len(want))
	}
	if !slices.ContainsFunc(got, func(e loaderEntry) bool { return e.name == "libc.so.6" && !e.foreign() }) {
		t.Error("no native libc.so.6")
	}
}

func FuzzParseLoaderCache(f *testing.F) {
	if data, err := os.ReadFile("/etc/ld.so.cache"); err == nil && len(data) > 4096 {
		f.Add(data[:4096])
	}
	f.Add([]byte(loaderMagic + "\x01\x00\x00\x00" + strings.Repeat("\x00", 60)))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseLoaderCache(data)
		if err != nil {
			return
		}
		for _, e := range entries {
			if !strings.Contains(string(data), e.name) || !strings.Contains(string(data), e.path) {
				t.Errorf("%+v is not in the file", e)
			}
		}
	})
}

func TestIsDriverLibrary(t *testing.T) {
	for name, want := range map[string]bool{
		"libcuda.so": true, "libcuda.so.1": true, "libnvidia-ml.so.550.54.15": true, "libnvidia-nvvm70.so.4": true,
		"libcudart.so.12": false, "libcudnn.so.8": false, "libnvidia-container.so.1": false, "libcuda.a": false,
	} {
		if got := isDriverLibrary(name); got != want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
