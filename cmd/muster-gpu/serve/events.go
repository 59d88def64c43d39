package serve

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/muster-agent/muster/shim/gpu"
)

// waitTime is how long one wait for events lasts, in ms; it bounds the end of the watching.
const waitTime = 500

// wanted are the events that we know what to do with, as far as a device has them.
const wanted = nvml.EventTypeXidCriticalError | nvml.EventTypeDoubleBitEccError |
	nvml.EventTypeGpuUnavailableError | nvml.EventTypeGpuRecoveryAction

// eventSet is NVML's, read by a goroutine of its own.
type eventSet struct {
	lib     *library
	set     nvml.EventSet
	stopped chan struct{} // asks it to end
	ended   chan struct{}
}

// watch registers all devices. emit gets what happens, from another goroutine.
func (l *library) watch(emit func(gpu.Event)) (*eventSet, error) {
	if !l.has("nvmlEventSetWait") {
		return nil, fmt.Errorf("watch events: %s", word(nvml.ERROR_FUNCTION_NOT_FOUND))
	}
	handles, err := l.handles()
	if err != nil {
		return nil, err
	}
	set, ret := ask(l, "nvmlEventSetCreate", l.nvml.EventSetCreate)
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("make event set: %s", word(ret))
	}
	e := &eventSet{lib: l, set: set, stopped: make(chan struct{}), ended: make(chan struct{})}
	registered := 0
	var refused nvml.Return
	byUUID := map[string]handle{}
	for _, h := range handles {
		if h.lost != nvml.SUCCESS {
			continue
		}
		byUUID[h.uuid] = h
		types := or(uint64(0))(ask(l, "nvmlDeviceGetSupportedEventTypes", h.GetSupportedEventTypes)) & wanted
		_, ret := ask(l, "nvmlDeviceRegisterEvents", func() (struct{}, nvml.Return) {
			return struct{}{}, h.RegisterEvents(types, set)
		})
		if types != 0 && ret == nvml.SUCCESS {
			registered++
		} else {
			refused = ret
		}
	}
	if registered == 0 {
		e.free()
		return nil, fmt.Errorf("register events: no device of %d takes part: %s", len(handles), word(refused))
	}
	go e.read(byUUID, emit)
	return e, nil
}

func (e *eventSet) read(byUUID map[string]handle, emit func(gpu.Event)) {
	defer close(e.ended)
	for {
		select {
		case <-e.stopped:
			return
		default:
		}
		data, ret := e.set.Wait(waitTime)
		if ret == nvml.SUCCESS {
			if event, ok := e.lib.event(data, byUUID); ok {
				emit(event)
			}
			continue
		}
		if ret == nvml.ERROR_GPU_IS_LOST {
			e.lib.tellLost(byUUID, emit)
		}
		if ret != nvml.ERROR_TIMEOUT {
			e.rest()
		}
	}
}

// tellLost finds out which devices the driver has lost, and tells of each once: NVML does not say.
func (l *library) tellLost(byUUID map[string]handle, emit func(gpu.Event)) {
	now, err := l.handles()
	if err != nil {
		return // asked again at the next wait
	}
	for uuid, h := range byUUID {
		if slices.ContainsFunc(now, func(n handle) bool { return n.index == h.index && n.lost != nvml.SUCCESS }) {
			delete(byUUID, uuid)
			emit(gpu.Event{
				Kind: gpu.EventUnavailable, Device: uuid, Index: h.index,
				Text: word(nvml.ERROR_GPU_IS_LOST),
			})
		}
	}
}

// rest keeps an error that does not go away from turning into a busy loop.
func (e *eventSet) rest() {
	timer := time.NewTimer(waitTime * time.Millisecond)
	defer timer.Stop()
	select {
	case <-e.stopped:
	case <-timer.C:
	}
}

func (l *library) event(data nvml.EventData, byUUID map[string]handle) (gpu.Event, bool) {
	out := gpu.Event{Index: -1}
	h, known := concerned(data.Device, byUUID)
	if known {
		out.Device, out.Index = h.uuid, h.index
	}
	if id := int(data.GpuInstanceId); data.GpuInstanceId != noInstance {
		out.GPUInstance = &id
	}
	switch data.EventType {
	case nvml.EventTypeXidCriticalError:
		out.Kind, out.Xid = gpu.EventXid, int(data.EventData)
	case nvml.EventTypeDoubleBitEccError:
		out.Kind = gpu.EventECC
	case nvml.EventTypeGpuUnavailableError:
		out.Kind = gpu.EventUnavailable
	case nvml.EventTypeGpuRecoveryAction:
		out.Kind = gpu.EventRecovery
		if known {
			out.Recovery = l.recovery(h)
		}
	default:
		return gpu.Event{}, false
	}
	return out, true
}

// noInstance is what NVML says of an event that is of no GPU instance.
const noInstance = math.MaxUint32

// concerned finds the device of an event. One that is falling off the bus may not tell its UUID any more.
func concerned(d nvml.Device, byUUID map[string]handle) (handle, bool) {
	if d == nil {
		return handle{}, false
	}
	if uuid, ret := d.GetUUID(); ret == nvml.SUCCESS {
		h, known := byUUID[uuid]
		return h, known
	}
	for _, h := range byUUID {
		if h.Device == d {
			return h, true
		}
	}
	return handle{}, false
}

// stop ends the reader and frees the set.
func (e *eventSet) stop() {
	close(e.stopped)
	<-e.ended
	e.free()
}

func (e *eventSet) free() {
	if e.lib.has("nvmlEventSetFree") {
		_ = e.set.Free()
	}
}
