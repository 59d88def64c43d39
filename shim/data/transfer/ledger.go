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

// Ledger keeps what has come of the files of a folder, so that who comes after an agent that was killed, or another
// attempt, brings only what is missing. It believes nothing that it does not find on disk with its CRC32C; of a source
// that has changed nothing is kept. It is for one Bring at a time.
type Ledger struct {
	mu    sync.Mutex
	file  *os.File // lines are added; nil: it can no longer be written
	known map[string]arrival
	step  int64 // after how many bytes of a file a line follows: so much may come twice
}

// arrival is what has come of one file, a line of JSON. The last one of a file counts.
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

// sourceOf tells one source from another, by its SHA-256: the URL may have secrets, and the ledger lies on disk.
func sourceOf(f File) string {
	h := sha256.Sum256([]byte(f.Name()))
	return hex.EncodeToString(h[:])
}

// OpenLedger reads the ledger of a name in a folder, and begins it anew with what it said. One that cannot be read says
// nothing.
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

// read takes the lines that are whole.
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

// due tells whether so many bytes of a file are worth a line.
func (l *Ledger) due(bytes int64) bool { return l != nil && bytes >= l.step }

// note adds a line. Where that fails the next agent brings more, and nothing else.
func (l *Ledger) note(e arrival) {
	if l == nil || e.Version == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known[e.To] = e
	if l.file != nil && l.write(e) != nil {
		_ = l.file.Close() // no line follows half a one
		l.file = nil
	}
}

// of is what has come of a file's present version.
func (l *Ledger) of(c Copy) (e arrival, ok bool) {
	if l == nil || c.From.Version == "" {
		return e, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok = l.known[c.To]
	return e, ok && e.From == sourceOf(c.From) && e.Version == c.From.Version
}

// has tells whether a file is whole on disk, as the ledger says.
func (l *Ledger) has(ctx context.Context, folder *os.Root, c Copy) bool {
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

// check reads what has come.
func (e arrival) check(ctx context.Context, r io.Reader) error {
	h := crc32.New(castagnoli)
	n, err := io.Copy(h, store.Reader(ctx, io.LimitReader(r, e.Bytes)))
	if err == nil && (n != e.Bytes || h.Sum32() != e.Sum) {
		err = fmt.Errorf("%w: CRC32C of %d bytes is %08x, want %08x of %d", store.ErrCorrupt, n, h.Sum32(), e.Sum,
			e.Bytes)
	}
	return err
}

// own opens a file that has no other name: what the process that had the folder made of it may be anything.
func own(folder *os.Root, name string, how int) (*os.File, error) {
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

// Sweep takes away what lies in a folder below one of the root, but what these copies can go on from. The rest was
// brought for others, or made by a process.
func (l *Ledger) Sweep(root *os.Root, dir string, copies []Copy) error {
	info, err := root.Lstat(dir)
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
		return errors.Join(err, root.RemoveAll(dir))
	}
	var folders []string
	err = fs.WalkDir(root.FS(), dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			folders = append(folders, name)
			return nil
		case stays[name]:
			return nil
		}
		return root.Remove(name)
	})
	for _, name := range slices.Backward(folders) {
		if gone := root.Remove(name); !errors.Is(gone, syscall.ENOTEMPTY) && !errors.Is(gone, fs.ErrExist) {
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
