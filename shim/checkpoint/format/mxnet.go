package format

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strconv"
)

var epochForm = regexp.MustCompile(`^(.+)-(\d{4,18})\.params$`)

// mxnet reads what mx.callback.do_checkpoint writes: `prefix-0003.params` beside the network in `prefix-symbol.json`,
// and `prefix-0003.states` of the optimizer where there are some.
func mxnet(dir fs.FS) ([]candidate, error) {
	files, _, err := listed(dir)
	if err != nil {
		return nil, err
	}
	var all []candidate
	for name, f := range files {
		m := epochForm.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		epoch, err := strconv.ParseInt(m[2], 10, 64)
		if err != nil {
			continue
		}
		symbol := m[1] + "-symbol.json"
		c := candidate{step: epoch, path: name, files: append(beside(files, symbol, m[1]+"-"+m[2]+".states"), f)}
		if _, ok := files[symbol]; !ok {
			c.lacks = "no " + symbol
		}
		c.check = func(dir fs.FS) (int64, error) {
			if err := with(dir, symbol, wholeJSON); err != nil {
				return epoch, err
			}
			return epoch, with(dir, name, wholeParams)
		}
		all = append(all, c)
	}
	return all, nil
}

// wholeParams tells the two forms apart: the list of arrays, and the zip of mx.npx.
func wholeParams(f content) error {
	head, err := f.bytesAt(0, min(headBytes, f.size))
	if err != nil {
		return err
	}
	if bytes.HasPrefix(head, zipMagic) {
		return wholeZip(f)
	}
	return wholeMXNet(f)
}

// wholeJSON: one value, to its end.
func wholeJSON(f content) error {
	r := &unheld{r: io.NewSectionReader(f, 0, f.size)}
	d := json.NewDecoder(r)
	depth := 0
	for {
		t, err := d.Token()
		if err != nil {
			return unlessLarge(fmt.Errorf("JSON: %w", cut(err)))
		}
		r.taken = d.InputOffset()
		if delim, ok := t.(json.Delim); ok && (delim == '{' || delim == '[') {
			depth++
		} else if ok {
			depth--
		}
		switch {
		case depth == 0:
			return nil
		case depth > mostNested:
			return fmt.Errorf("JSON: %w", errStrange)
		}
	}
}

// mostNested is how deep lists and objects of JSON may lie in each other.
const mostNested = 1000

// mostToken is how long a text of JSON may be, in bytes.
const mostToken = 8 << 20

// unheld reads no further than mostToken bytes before what has been taken of it: all that lies between is held in
// memory.
type unheld struct {
	r           io.Reader
	read, taken int64
}

func (u *unheld) Read(b []byte) (int, error) {
	if u.read-u.taken > mostToken {
		return 0, errLarge
	}
	n, err := u.r.Read(b)
	u.read += int64(n)
	return n, err
}

// mxnetMagic begins a list of arrays.
var mxnetMagic = []byte{0x12, 0x01, 0, 0, 0, 0, 0, 0}

// Magic numbers of one array, by version.
const (
	arrayV1 = 0xF993FAC8
	arrayV2 = 0xF993FAC9
	arrayV3 = 0xF993FACA
)

// arrayBytes are the sizes of MXNet's types by number: float32, float64, float16, uint8, int32, int8, int64, bool,
// int16, uint16, uint32, uint64, bfloat16.
var arrayBytes = []int64{4, 8, 2, 1, 4, 1, 8, 1, 2, 2, 4, 8, 2}

// wholeMXNet walks a list of arrays to its end: the arrays, and then their names. An array that is sparse is not looked
// through, and then the file counts as it is.
func wholeMXNet(f content) error {
	w := walker{f: f}
	if magic := w.u64(); w.err != nil || magic != binary.LittleEndian.Uint64(mxnetMagic) {
		return errors.New("not a list of arrays")
	}
	w.u64()
	n := w.u64()
	if w.err == nil && n > mostValues {
		return fmt.Errorf("arrays: %w", errStrange)
	}
	for ; n > 0 && w.err == nil; n-- {
		if err := w.array(); errors.Is(err, errLarge) {
			return nil
		} else if err != nil {
			return err
		}
	}
	if n = w.u64(); w.err == nil && n > mostValues {
		return fmt.Errorf("arrays: %w", errStrange)
	}
	for ; n > 0 && w.err == nil; n-- {
		w.skip(w.u64())
	}
	return w.err
}

// walker reads numbers in order; after the end of the file it says so.
type walker struct {
	f      content
	at     int64
	err    error
	begin  int64 // of what was read ahead
	buffer []byte
}

// readAhead is what a walker reads at once, in bytes: what it asks for are a few each time.
const readAhead = 64 << 10

// bytes are the next n, at most 8.
func (w *walker) bytes(n int64) []byte {
	if w.err == nil && (w.at < w.begin || w.at+n > w.begin+int64(len(w.buffer))) {
		w.begin = w.at
		w.buffer, w.err = w.f.bytesAt(w.at, min(max(readAhead, n), max(w.f.size-w.at, n)))
	}
	if w.err != nil {
		return make([]byte, n)
	}
	b := w.buffer[w.at-w.begin:][:n]
	w.at += n
	return b
}

func (w *walker) u64() uint64 { return binary.LittleEndian.Uint64(w.bytes(8)) }
func (w *walker) u32() uint32 { return binary.LittleEndian.Uint32(w.bytes(4)) }

func (w *walker) skip(n uint64) {
	if w.err == nil && n > uint64(w.f.size-w.at) { //nolint:gosec // at is within the file
		w.err = errCut
	}
	if w.err == nil {
		w.at += int64(n) //nolint:gosec // at most the file's size
	}
}

// array passes over one.
func (w *walker) array() error {
	version, known := w.u32(), false
	width := int64(4)
	switch version {
	case arrayV1:
		known, width = true, 8
	case arrayV2, arrayV3:
		known, width = true, 8
		if kind := int32(w.u32()); kind > 0 { //nolint:gosec // as it was written
			return errLarge
		}
	}
	n := uint64(version) // before version 1 the first number is that of the dimensions
	if known {
		n = uint64(w.u32())
	}
	if w.err != nil {
		return w.err
	}
	if n == 0 && version != arrayV3 || version == arrayV3 && int32(n) < 0 { //nolint:gosec // as it was written
		return nil // nothing in it
	}
	if n > 32 {
		return fmt.Errorf("array: %w", errStrange)
	}
	elements := uint64(1)
	for range n {
		d := uint64(w.u32())
		if width == 8 {
			d |= uint64(w.u32()) << 32
		}
		if w.err != nil || d > 0 && elements > uint64(w.f.size)/d { //nolint:gosec // sizes are not negative
			return errCut
		}
		elements *= d
	}
	w.u64() // where it was: kind and number of the device
	kind := w.u32()
	if w.err == nil && int(kind) >= len(arrayBytes) {
		return errLarge
	}
	if w.err == nil {
		w.skip(elements * uint64(arrayBytes[kind])) //nolint:gosec // not negative
	}
	return w.err
}
