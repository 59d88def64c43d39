package sandbox

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSealedMemfd(t *testing.T) {
	f, err := sealedMemfd("muster-test", strings.NewReader("guard"), true)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("G"), 0); !errors.Is(err, unix.EPERM) {
		t.Errorf("written to: got %v, want EPERM", err)
	}
	if err := f.Truncate(0); !errors.Is(err, unix.EPERM) {
		t.Errorf("cut: got %v, want EPERM", err)
	}
}

// A page that is in use for a while does not fail a start; one that stays so does.
func TestSealIsTriedAgain(t *testing.T) {
	for _, tt := range []struct {
		name  string
		until int // the pause in which the page is given back
		want  error
	}{
		{"in use for a while", 3, nil},
		{"in use for ever", sealTries, unix.EBUSY},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fd, err := unix.MemfdCreate("muster-test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
			if err != nil {
				t.Fatal(err)
			}
			f := os.NewFile(uintptr(fd), "muster-test")
			defer f.Close()
			if err := f.Truncate(4096); err != nil {
				t.Fatal(err)
			}
			page, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			if err != nil {
				t.Fatal(err)
			}
			unmap := func() {
				if err := unix.Munmap(page); err != nil {
					t.Error(err)
				}
				page = nil
			}
			pauses := 0
			err = seal(f, func() {
				if pauses++; pauses == tt.until {
					unmap()
				}
			})
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v after %d pauses, want %v", err, pauses, tt.want)
			}
			if page != nil {
				unmap()
			}
		})
	}
}
