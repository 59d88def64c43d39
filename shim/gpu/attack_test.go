package gpu

import (
	"maps"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/tests/need"
)

// A process that has bound the names of all devices' announcements keeps root from none; the devices that nobody
// announced are taken first.
func TestAttackAllDevicesAnnounced(t *testing.T) {
	need.Root(t) // an ordinary user's agent leaves a device to another user that announces it
	devices := here(t, 3)
	for _, d := range devices[:2] {
		for _, name := range lockNames(d) {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Close(fd) })
			if err := unix.Bind(fd, &unix.SockaddrUnix{Name: "@muster/gpu/" + name}); err != nil {
				t.Fatal(err)
			}
		}
	}
	free := claimed(t, devices, Want{Count: 1})
	if got := free.IDs(); !slices.Equal(got, []string{devices[2].ID()}) || len(free.Foreign) > 0 {
		t.Errorf("one: got %v, beside %v", got, free.Foreign)
	}
	rest := claimed(t, devices, Want{Count: 2})
	if got, want := slices.Sorted(maps.Keys(rest.Foreign)), rest.IDs(); !slices.Equal(got, want) {
		t.Errorf("the rest: got %v, told of %v", want, got)
	}
}
