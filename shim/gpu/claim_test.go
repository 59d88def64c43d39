package gpu

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// here is a host whose devices no other test or agent of this machine claims.
func here(t *testing.T, n int) []Device {
	t.Helper()
	devices := host()[:n]
	for i := range devices {
		// The node's number is a lock of its own, so it must be nobody else's, too.
		devices[i].UUID, devices[i].Minor = fmt.Sprintf("GPU-test-%d-%s-%d", os.Getpid(), t.Name(), i), 200_000_000+os.Getpid()*10+i
	}
	return devices
}

func claimed(t *testing.T, devices []Device, w Want) *Held {
	t.Helper()
	h, err := Claim(t.Context(), devices, w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Release(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func TestClaim(t *testing.T) {
	devices := here(t, 8)
	first := claimed(t, devices, Want{Count: 4})
	second := claimed(t, devices, Want{Count: 3})
	if got := indices(first.Devices); !slices.Equal(got, []int{0, 1, 2, 3}) {
		t.Errorf("first: got %v", got)
	}
	if got := indices(second.Devices); !slices.Equal(got, []int{4, 5, 6}) {
		t.Errorf("second: got %v", got)
	}
	w := Want{Count: 2, Busy: map[string]bool{}}
	_, err := Claim(t.Context(), devices, w)
	if !errors.Is(err, ErrTooFew) || !strings.Contains(err.Error(), "GPU 0, 1, 2, 3, 4, 5, 6 held by another agent") {
		t.Errorf("third: got %v", err)
	}
	if len(w.Busy) != 0 {
		t.Errorf("the caller's map was written to: %v", w.Busy)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	if got := claimed(t, devices, Want{Count: 4}).IDs(); len(got) != 4 || got[0] != devices[0].UUID {
		t.Errorf("after the release: got %v", got)
	}
}

// An agent without a helper knows a device by its node's number only.
func TestClaimByNodeAlone(t *testing.T) {
	devices := here(t, 1)
	claimed(t, devices, Want{Count: 1})
	alone := []Device{{Index: 0, Minor: devices[0].Minor}}
	if _, err := Claim(t.Context(), alone, Want{Count: 1}); !errors.Is(err, ErrTooFew) {
		t.Errorf("got %v, want ErrTooFew", err)
	}
}

func TestClaimGranted(t *testing.T) {
	devices := here(t, 4)
	held := claimed(t, devices, Want{Count: 1, Granted: []string{"0"}})
	if len(held.Shared) != 0 {
		t.Errorf("shared %v", held.Shared)
	}
	t.Run("without a grant nobody takes it", func(t *testing.T) {
		if got := indices(claimed(t, devices, Want{Count: 1}).Devices); !slices.Equal(got, []int{1}) {
			t.Errorf("got %v", got)
		}
	})
	t.Run("granted to two", func(t *testing.T) {
		second := claimed(t, devices, Want{Count: 1, Granted: []string{devices[0].UUID}})
		if !slices.Equal(indices(second.Devices), []int{0}) || !slices.Equal(second.Shared, []string{devices[0].UUID}) {
			t.Errorf("got %v, shared %v", indices(second.Devices), second.Shared)
		}
	})
	t.Run("granted to two, one of whom has it named twice", func(t *testing.T) {
		second := claimed(t, devices, Want{Count: 1, Granted: []string{"0", devices[0].UUID}})
		if !slices.Equal(indices(second.Devices), []int{0}) || !slices.Equal(second.Shared, []string{devices[0].UUID}) {
			t.Errorf("got %v, shared %v", indices(second.Devices), second.Shared)
		}
	})
	t.Run("a larger grant is divided", func(t *testing.T) {
		if got := indices(claimed(t, devices, Want{Count: 2, Granted: []string{"0", "1", "2"}}).Devices); !slices.Equal(got, []int{1, 2}) {
			t.Errorf("got %v", got)
		}
	})
	t.Run("MIG instances are locked one by one", func(t *testing.T) {
		id := "MIG-" + devices[0].UUID
		cut := []Device{{Index: 0, Minor: devices[0].Minor, MIG: []MIG{{UUID: id + "a", Index: 0}, {UUID: id + "b", Index: 1}}}}
		for _, name := range []string{"0:0", "0:1"} {
			if h := claimed(t, cut, Want{Count: 1, Granted: []string{name}}); len(h.Shared) != 0 {
				t.Errorf("%s: shared %v", name, h.Shared)
			}
		}
	})
}

// Many agents at once share out all devices, none twice.
func TestClaimCrowd(t *testing.T) {
	devices := here(t, 8)
	var wg sync.WaitGroup
	results := make(chan *Held, 16)
	refused := make(chan error, 16)
	for range 16 {
		wg.Go(func() {
			h, err := Claim(t.Context(), devices, Want{Count: 2})
			if err != nil {
				refused <- err
				return
			}
			results <- h
		})
	}
	wg.Wait()
	close(results)
	close(refused)
	taken := map[int]bool{}
	for h := range results {
		for _, d := range h.Devices {
			if taken[d.Index] {
				t.Errorf("GPU %d was taken twice", d.Index)
			}
			taken[d.Index] = true
		}
		if err := h.Release(); err != nil {
			t.Error(err)
		}
	}
	if len(taken) != 8 {
		t.Errorf("%d of 8 GPUs were taken", len(taken))
	}
	for err := range refused {
		if !errors.Is(err, ErrTooFew) {
			t.Errorf("got %v", err)
		}
	}
}

// Somebody who stopped in the middle of choosing stops nobody else for long.
func TestQueuePastAStuckChooser(t *testing.T) {
	leave := queue(t.Context(), watchdog)
	defer leave()
	began := time.Now()
	second := queue(t.Context(), 50*time.Millisecond)
	second()
	if took := time.Since(began); took < 50*time.Millisecond || took > queueTime {
		t.Errorf("it waited %s for its turn", took)
	}
}

// What is held is found again in a later inventory, and what concerns it is told from what happens beside it.
func TestHeldLater(t *testing.T) {
	cut := Device{UUID: "GPU-0", Index: 0, MIG: []MIG{{UUID: "MIG-a", GPUInstance: 1}, {UUID: "MIG-b", GPUInstance: 2}, {UUID: "MIG-c", GPUInstance: 3}}}
	cut.Processes = []Process{{PID: 7, GPUInstance: 1}, {PID: 8, GPUInstance: 3}}
	held := Held{Devices: []Device{cut.instance(cut.MIG[0]), cut.instance(cut.MIG[1]), {UUID: "GPU-1", Index: 1}}}
	now, missing := held.Now([]Device{cut, {UUID: "GPU-1", Index: 1, UsedMB: 9}})
	if len(now) != 3 || len(missing) != 0 || now[0].ID() != "MIG-a" || len(now[0].Processes) != 1 || now[1].ID() != "MIG-b" || now[2].UsedMB != 9 {
		t.Errorf("all there: got %+v, missing %v", now, missing)
	}
	cut.MIG = cut.MIG[:1]
	now, missing = held.Now([]Device{cut, {Index: 1}}) // a lost GPU has no UUID any more
	if len(now) != 1 || !slices.Equal(missing, []string{"GPU 0 (MIG-b)", "GPU 1 (GPU-1)"}) {
		t.Errorf("two gone: got %+v, missing %v", now, missing)
	}
	for _, c := range []struct {
		event Event
		want  bool
	}{
		{Event{Device: "GPU-0"}, true},
		{Event{Device: "GPU-0", GPUInstance: new(2)}, true},
		{Event{Device: "GPU-0", GPUInstance: new(3)}, false},
		{Event{Device: "GPU-1", GPUInstance: new(3)}, true},
		{Event{Device: "GPU-2"}, false},
		{Event{Kind: EventHelper}, false},
	} {
		if got := held.Concerns(c.event); got != c.want {
			t.Errorf("%+v: got %v, want %v", c.event, got, c.want)
		}
	}
}
