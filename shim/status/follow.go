package status

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// poll is how often a followed file is looked at again.
const poll = 200 * time.Millisecond

// Follow copies a growing file from offset on. With follow it goes on, over rotations and a file
// that is not there yet, until ctx is done; without it it ends at the end of the file.
func Follow(ctx context.Context, path string, offset int64, follow bool, to io.Writer) error {
	var f *os.File
	defer func() {
		if f != nil {
			_ = f.Close() //nolint:errcheck // only read
		}
	}()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		if f == nil {
			var err error
			f, err = os.Open(path)
			if err != nil && (!follow || !errors.Is(err, fs.ErrNotExist)) {
				return err
			}
			if err == nil {
				if _, err := f.Seek(offset, io.SeekStart); err != nil {
					return err
				}
				offset = 0 // of the next file, after a rotation
			}
		}
		if f != nil {
			if _, err := io.Copy(to, f); err != nil {
				return err
			}
			if rotated(f, path) {
				_, err := io.Copy(to, f) // what came between the copy and the rotation
				if err = errors.Join(err, f.Close()); err != nil {
					return err
				}
				f = nil
				continue
			}
		}
		if !follow {
			return nil
		}
		select {
		case <-ctx.Done():
			if f != nil {
				_, err := io.Copy(to, f)
				return err
			}
			return nil
		case <-ticker.C:
		}
	}
}

// rotated tells that the path now names another file.
func rotated(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && !os.SameFile(mine, now)
}
