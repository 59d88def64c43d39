package transfer

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/muster-agent/muster/shim/store"
)

// Ledger records which bytes of a folder's files have arrived, so that the agent after a killed one, or another
// attempt, brings only the missing ones. It trusts no bytes on disk without their CRC32C, and drops the record of a
// source that has changed. It serves one Bring at a time.
type Ledger struct {
	mu    sync.Mutex
	file  *os.File // lines are added; nil: it can no longer be written
	known map[string]arrival
	step  int64 // bytes of a file between two lines: so much may arrive twice
}

// arrival is the progress of one file, a line of JSON. The last line of a file counts.
type arrival struct {
	To      string `json:"to"`
	From    string `json:"from"`    // see sourceOf
	Version string `json:"version"` // of the source
	Bytes   int64  `json:"bytes"`   // from its start
	Sum     uint32 `json:"crc32c"`  // of them
	Whole   bool   `json:"whole,omitempty"`
}

const (
	// mostLedger is how much of a ledger is read, in bytes.
	mostLedger = 64 << 20
	ledgerStep = 16 << 20
)

// sourceOf identifies a source by the SHA-256 of its URL: the URL may contain secrets, and the ledger is a file.
func sourceOf(f File) string {
	h := sha256.Sum256([]byte(f.Name()))
	return hex.EncodeToString(h[:])
}

// OpenLedger reads the ledger of a name in a folder, and rewrites it. A ledger that cannot be read counts as empty.
func OpenLedger(folder *os.Root, name string) (*Ledger, error) {
	l := &Ledger{known: map[string]arrival{}, step: ledgerStep}
	if f, err := folder.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
		l.read(f)
		_ = f.Close() // it was read
	}
	tmp := name + ".new"
	if err := folder.RemoveAll(tmp); err != nil {
		return nil, err
	}
	f, err := folder.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	l.file = f
	for _, e := range l.known {
		err = errors.Join(err, l.write(e))
	}
	if err == nil {
		err = folder.Rename(tmp, name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return l, nil
}

// read takes the complete lines.
func (l *Ledger) read(r io.Reader) {
	for lines := bufio.NewScanner(io.LimitReader(r, mostLedger)); lines.Scan(); {
		var e arrival
		if err := json.Unmarshal(lines.Bytes(), &e); err == nil && fs.ValidPath(e.To) && e.Bytes >= 0 {
			l.known[e.To] = e
		}
	}
}

func (l *Ledger) write(e arrival) error {
	text, err := json.Marshal(e)
	if err == nil {
		_, err = l.file.Write(append(text, '\n'))
	}
	return err
}

// due tells whether the progress of a file is worth a line.
func (l *Ledger) due(bytes int64) bool { return l != nil && bytes >= l.step }

// note adds a line. If that fails, the next agent brings more, and nothing else breaks.
func (l *Ledger) note(e arrival) {
	if l == nil || e.Version == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known[e.To] = e
	if l.file != nil && l.write(e) != nil {
		_ = l.file.Close() // no line may follow an incomplete one
		l.file = nil
	}
}

// of is the progress of a file's present version.
func (l *Ledger) of(c Copy) (e arrival, ok bool) {
	if l == nil || c.From.Version == "" {
		return e, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok = l.known[c.To]
	return e, ok && e.From == sourceOf(c.From) && e.Version == c.From.Version
}

// has tells whether a file is complete on disk, as the ledger says.
func (l *Ledger) has(ctx context.Context, folder Folder, c Copy) bool {
	e, ok := l.of(c)
	if !ok || !e.Whole {
		return false
	}
	f, err := own(folder, c.To, os.O_RDONLY)
	if err != nil {
		return false
	}
	info, err := f.Stat()
	if err == nil && info.Size() == e.Bytes {
		err = e.check(ctx, f)
	} else {
		err = errors.Join(err, &SizeError{e.Bytes, -1})
	}
	return errors.Join(err, f.Close()) == nil
}

// check reads the bytes that have arrived.
func (e arrival) check(ctx context.Context, r io.Reader) error {
	h := crc32.New(castagnoli)
	n, err := io.Copy(h, store.Reader(ctx, io.LimitReader(r, e.Bytes)))
	if err == nil && (n != e.Bytes || h.Sum32() != e.Sum) {
		err = fmt.Errorf("%w: CRC32C of %d bytes is %08x, want %08x of %d", store.ErrCorrupt, n, h.Sum32(), e.Sum,
			e.Bytes)
	}
	return err
}

// own opens a file that has no other name: the process that had the folder may have linked it to anything.
func own(folder Folder, name string, how int) (*os.File, error) {
	f, err := folder.OpenFile(name, how|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || !info.Mode().IsRegular() || st.Nlink != 1 {
			err = store.ErrNotFile
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// swept is a folder of which parts are removed.
type swept interface {
	Lstat(name string) (fs.FileInfo, error)
	Remove(name string) error
	// Clear removes a folder, also one that its process has closed to itself.
	Clear(name string) error
	// View has the folder's content read.
	View(read func(fs.FS) error) error
}

// Sweep removes the files of a folder below another, except those that these copies can resume from. The rest was
// brought for other instances, or made by a process.
func (l *Ledger) Sweep(folder swept, dir string, copies []Copy) error {
	info, err := folder.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	stays := map[string]bool{}
	for _, c := range copies {
		if e, ok := l.of(c); ok && e.Whole {
			stays[c.To] = true
		} else if ok {
			stays[halfOf(c.To)] = true
		}
	}
	if err != nil || !info.IsDir() || len(stays) == 0 {
		return errors.Join(err, folder.Clear(dir))
	}
	var gone, folders []string
	err = folder.View(func(in fs.FS) error {
		return fs.WalkDir(in, dir, func(name string, d fs.DirEntry, err error) error {
			if d != nil && d.IsDir() {
				folders = append(folders, name)
			} else if err == nil && !stays[name] {
				gone = append(gone, name)
			}
			return err
		})
	})
	for _, name := range gone {
		err = errors.Join(err, folder.Remove(name))
	}
	for _, name := range slices.Backward(folders) {
		if gone := folder.Remove(name); !errors.Is(gone, syscall.ENOTEMPTY) && !errors.Is(gone, fs.ErrExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// Close ends the writing.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}
