package serve

import (
	"errors"
	"fmt"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/muster-agent/muster/shim/gpu"
)

// library is NVML behind a gate: go-nvml is linked lazily, so a call to a symbol that the installed library lacks ends
// the process. Each is looked up before its first use (has), and after a failed Init none is called at all.
type library struct {
	nvml nvml.Interface

	mu    sync.Mutex
	known map[string]bool // symbol → there
}

func newLibrary(lib nvml.Interface) *library { return &library{nvml: lib, known: map[string]bool{}} }

// init loads and initialises NVML.
func (l *library) init() error {
	ret := l.nvml.Init()
	if ret == nvml.SUCCESS {
		return nil
	}
	if why := noDriver[ret]; why != "" {
		return errors.New(why)
	}
	return fmt.Errorf("initialise NVML: %s", word(ret))
}

// noDriver are the ways in which a host has no working driver.
var noDriver = map[nvml.Return]string{
	nvml.ERROR_LIBRARY_NOT_FOUND: "load libnvidia-ml.so.1: not found: no NVIDIA driver is installed here",
	nvml.ERROR_DRIVER_NOT_LOADED: "initialise NVML: the kernel's NVIDIA driver is not loaded",
	nvml.ERROR_LIB_RM_VERSION_MISMATCH: "initialise NVML: library and kernel driver are of different versions: " +
		"reload the driver or restart the host",
	nvml.ERROR_NO_PERMISSION: "initialise NVML: no permission to use /dev/nvidiactl",
}

func (l *library) shutdown() {
	if l.has("nvmlShutdown") {
		_ = l.nvml.Shutdown() // the process ends
	}
}

// has tells whether the installed library knows the symbol.
func (l *library) has(symbol string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	there, asked := l.known[symbol]
	if !asked {
		there = l.nvml.Extensions().LookupSymbol(symbol) == nil
		l.known[symbol] = there
	}
	return there
}

// ask calls an NVML function if the library has it.
func ask[T any](l *library, symbol string, call func() (T, nvml.Return)) (T, nvml.Return) {
	if !l.has(symbol) {
		var none T
		return none, nvml.ERROR_FUNCTION_NOT_FOUND
	}
	return call()
}

// or is the value if NVML gave one, else the other.
func or[T any](other T) func(T, nvml.Return) T {
	return func(value T, ret nvml.Return) T {
		if ret != nvml.SUCCESS {
			return other
		}
		return value
	}
}

func (l *library) hello() gpu.Hello {
	cuda := ""
	if v, ret := ask(l, "nvmlSystemGetCudaDriverVersion", l.nvml.SystemGetCudaDriverVersion); ret == nvml.SUCCESS {
		cuda = fmt.Sprintf("%d.%d", v/1000, v%1000/10)
	}
	return gpu.Hello{
		Protocol: gpu.Protocol, CUDA: cuda,
		Driver: or("")(ask(l, "nvmlSystemGetDriverVersion", l.nvml.SystemGetDriverVersion)),
		NVML:   or("")(ask(l, "nvmlSystemGetNVMLVersion", l.nvml.SystemGetNVMLVersion)),
	}
}

// handle is a device of this moment.
type handle struct {
	nvml.Device
	index int
	uuid  string
	lost  nvml.Return // SUCCESS, or why the driver does not give it
}

// handles are all devices in NVML's order. One that the driver has lost is among them, by what is left of it.
func (l *library) handles() ([]handle, error) {
	count, ret := ask(l, "nvmlDeviceGetCount", l.nvml.DeviceGetCount)
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("count devices: %s", word(ret))
	}
	var out []handle
	for i := range count {
		d, ret := ask(l, "nvmlDeviceGetHandleByIndex", func() (nvml.Device, nvml.Return) {
			return l.nvml.DeviceGetHandleByIndex(i)
		})
		h := handle{Device: d, index: i, lost: ret}
		if ret == nvml.SUCCESS {
			h.uuid, ret = ask(l, "nvmlDeviceGetUUID", d.GetUUID)
			h.lost = ret
		}
		if h.lost == nvml.ERROR_NO_PERMISSION {
			continue // a device that the launcher keeps from us is not ours to speak of
		}
		out = append(out, h)
	}
	return out, nil
}

// word is a return code for people. It is not asked of the library: that may be why.
func word(ret nvml.Return) string {
	if w := words[ret]; w != "" {
		return w
	}
	return fmt.Sprintf("NVML error %d", int(ret))
}

var words = map[nvml.Return]string{
	nvml.ERROR_GPU_IS_LOST:        "the GPU is lost",
	nvml.ERROR_RESET_REQUIRED:     "the GPU must be reset",
	nvml.ERROR_NO_PERMISSION:      "no permission",
	nvml.ERROR_NOT_SUPPORTED:      "not supported",
	nvml.ERROR_FUNCTION_NOT_FOUND: "not known to the installed library",
	nvml.ERROR_TIMEOUT:            "time-out",
	nvml.ERROR_DRIVER_NOT_LOADED:  "the driver is not loaded",
	nvml.ERROR_UNINITIALIZED:      "not initialised",
	nvml.ERROR_IRQ_ISSUE:          "interrupts of the GPU do not arrive",
	nvml.ERROR_OPERATING_SYSTEM:   "the operating system refused",
}
