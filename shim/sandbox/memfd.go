package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// sealedMemfd holds the bytes of r and can be changed by nobody, us included.
func sealedMemfd(name string, r io.Reader, exec bool) (*os.File, error) {
	flags := unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	mode := unix.MFD_NOEXEC_SEAL
	if exec {
		mode = unix.MFD_EXEC
	}
	fd, err := unix.MemfdCreate(name, flags|mode)
	if errors.Is(err, unix.EINVAL) { // the two modes came with Linux 6.3
		fd, err = unix.MemfdCreate(name, flags)
	}
	if err != nil {
		return nil, fmt.Errorf("make memfd %s: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := io.Copy(f, r); err != nil {
		return nil, errors.Join(fmt.Errorf("fill memfd %s: %w", name, err), f.Close())
	}
	if err := seal(f, func() { time.Sleep(sealPause) }); err != nil {
		return nil, errors.Join(fmt.Errorf("seal memfd %s: %w", name, err), f.Close())
	}
	return f, nil
}

const (
	sealTries = 20
	sealPause = 10 * time.Millisecond
)

// seal tries again, after a pause, while the kernel says that a page is in use: what moves or scans memory (DAMON,
// compaction) holds a page for longer than the 150 ms that the kernel itself waits.
func seal(f *os.File, pause func()) error {
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	for try := 1; ; try++ {
		_, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals)
		if !errors.Is(err, unix.EBUSY) || try == sealTries {
			return err
		}
		pause()
	}
}
