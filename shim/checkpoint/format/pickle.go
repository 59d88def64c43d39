package format

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Of a pickle (Python's pickletools names its opcodes) only the data is taken: nothing of it is ever called. What it
// would make of classes is kept as what they are given.
type (
	pickleGlobal struct{ module, name string }
	pickleObject struct {
		of    any // a pickleGlobal, as a rule
		args  any // of __new__ or the call
		state any // of __setstate__; nil: none
	}
	pickleList struct{ items []any } // a list, a set
	pickleDict struct{ keys, values []any }
	pickleID   struct{ id any }  // a persistent id
	pickleLong struct{ n int64 } // bytes of a text that is too long to keep
	pickleMark struct{}
)

const (
	mostValues = 1 << 20  // of one pickle
	keptText   = 1 << 16  // bytes
	mostTexts  = 16 << 20 // bytes of all that are kept
	mostFields = 64       // of an object that is looked into
)

// errLarge is a pickle that is not read to its end: nothing says that it is torn.
var errLarge = errors.New("too much to look through")

// unpickler reads pickles one after another.
type unpickler struct {
	r      *bufio.Reader
	offset int64 // read so far
	stack  []any
	memo   map[uint64]any
	values int
	kept   int64 // bytes of texts
}

func newUnpickler(r io.Reader) *unpickler { return &unpickler{r: bufio.NewReaderSize(r, 1<<16)} }

// next reads one pickle. The end of the file before its STOP is errCut.
func (u *unpickler) next() (value any, err error) {
	u.stack, u.memo, u.values = u.stack[:0], map[uint64]any{}, 0
	for {
		op, err := u.byte()
		if err != nil {
			return nil, err
		}
		if op == '.' {
			return u.pop()
		}
		if err := u.do(op); err != nil {
			return nil, err
		}
		if u.values++; u.values > mostValues {
			return nil, errLarge
		}
	}
}

func (u *unpickler) do(op byte) error {
	switch op {
	case 0x80: // PROTO
		_, err := u.number(1)
		return err
	case 0x95: // FRAME
		_, err := u.number(8)
		return err
	case '(':
		u.push(pickleMark{})
	case 'N':
		u.push(nil)
	case 0x88, 0x89:
		u.push(op == 0x88)
	case ']', 0x8f:
		u.push(&pickleList{})
	case ')':
		u.push([]any{})
	case '}':
		u.push(&pickleDict{})
	case '0':
		_, err := u.pop()
		return err
	case '1':
		_, err := u.sinceMark()
		return err
	case '2':
		v, err := u.pop()
		u.push(v)
		u.push(v)
		return err
	case 'K', 'M', 'J', 0x8a, 0x8b, 'I', 'L', 'G', 'F':
		return u.doNumber(op)
	case 'X', 0x8c, 0x8d, 'T', 'U', 'B', 'C', 0x8e, 0x96, 'S', 'V':
		return u.doText(op)
	case 'q', 'r', 'p', 0x94, 'h', 'j', 'g':
		return u.doMemo(op)
	case 'a', 'e', 'l', 0x90, 0x91, 's', 'u', 'd', 't', 0x85, 0x86, 0x87:
		return u.doCollection(op)
	case 'c', 'i', 0x93, 'R', 0x81, 0x92, 'b', 'o', 'P', 'Q', 0x82, 0x83, 0x84, 0x97, 0x98:
		return u.doObject(op)
	default:
		return fmt.Errorf("pickle: %w", errStrange)
	}
	return nil
}

// errStrange is content that is none of its form.
var errStrange = errors.New("got what does not belong there")

func (u *unpickler) doNumber(op byte) error {
	widths := map[byte]int{'K': 1, 'M': 2, 'J': 4, 'G': 8, 0x8a: 1, 0x8b: 4}
	if op == 'I' || op == 'L' || op == 'F' {
		text, err := u.line()
		n, _ := strconv.ParseInt(strings.TrimSuffix(text, "L"), 10, 64) // of others the value is not needed
		u.push(n)
		return err
	}
	n, err := u.number(widths[op])
	if err != nil {
		return err
	}
	switch op {
	case 'J':
		u.push(int64(int32(n))) //nolint:gosec // that is what it is
	case 0x8a, 0x8b: // a number of n bytes
		text, err := u.text(n)
		if err != nil {
			return err
		}
		s, _ := text.(string)
		u.push(littleEndian(s))
	default:
		u.push(int64(n)) //nolint:gosec // at most 4 bytes; of 8, a float that nobody asks for
	}
	return nil
}

// littleEndian is a number of Python's in two's complement; one that is too large is not needed as such and stays a
// text.
func littleEndian(s string) any {
	if len(s) > 8 {
		return s
	}
	var b [8]byte
	copy(b[:], s)
	n := int64(binary.LittleEndian.Uint64(b[:])) //nolint:gosec // two's complement
	if len(s) > 0 && len(s) < 8 && s[len(s)-1] >= 0x80 {
		n -= 1 << (8 * len(s))
	}
	return n
}

func (u *unpickler) doText(op byte) error {
	widths := map[byte]int{0x8c: 1, 'U': 1, 'C': 1, 'X': 4, 'T': 4, 'B': 4, 0x8d: 8, 0x8e: 8, 0x96: 8}
	if op == 'S' || op == 'V' {
		text, err := u.line()
		u.push(strings.Trim(text, `'"`))
		return err
	}
	n, err := u.number(widths[op])
	if err != nil {
		return err
	}
	text, err := u.text(n)
	u.push(text)
	return err
}

func (u *unpickler) doMemo(op byte) error {
	var at uint64
	var err error
	switch op {
	case 'q', 'h':
		at, err = u.number(1)
	case 'r', 'j':
		at, err = u.number(4)
	case 0x94:
		at = uint64(len(u.memo))
	default:
		var text string
		text, err = u.line()
		at, _ = strconv.ParseUint(text, 10, 64) // one that is no number is never found
	}
	if err != nil {
		return err
	}
	if op == 'h' || op == 'j' || op == 'g' {
		v, ok := u.memo[at]
		if !ok {
			return fmt.Errorf("pickle: %w", errStrange)
		}
		u.push(v)
		return nil
	}
	v, err := u.pop()
	u.push(v)
	u.memo[at] = v
	return err
}

func (u *unpickler) doCollection(op byte) error {
	switch op {
	case 0x85, 0x86, 0x87:
		n := int(op) - 0x84
		if len(u.stack) < n {
			return fmt.Errorf("pickle: %w", errStrange)
		}
		tuple := append([]any{}, u.stack[len(u.stack)-n:]...)
		u.stack = u.stack[:len(u.stack)-n]
		u.push(tuple)
		return nil
	case 'a', 's':
		return u.addOne(op)
	}
	items, err := u.sinceMark()
	if err != nil {
		return err
	}
	switch op {
	case 't':
		u.push(items)
	case 'l', 0x91:
		u.push(&pickleList{items})
	case 'd':
		d := &pickleDict{}
		d.add(items)
		u.push(d)
	default:
		return u.addAll(items)
	}
	return nil
}

// addOne is APPEND and SETITEM.
func (u *unpickler) addOne(op byte) error {
	n := 1
	if op == 's' {
		n = 2
	}
	if len(u.stack) <= n {
		return fmt.Errorf("pickle: %w", errStrange)
	}
	items := append([]any{}, u.stack[len(u.stack)-n:]...)
	u.stack = u.stack[:len(u.stack)-n]
	return u.addAll(items)
}

func (u *unpickler) addAll(items []any) error {
	if len(u.stack) == 0 {
		return fmt.Errorf("pickle: %w", errStrange)
	}
	switch to := u.stack[len(u.stack)-1].(type) {
	case *pickleList:
		to.items = append(to.items, items...)
	case *pickleDict:
		to.add(items)
	case *pickleObject: // an OrderedDict: its entries are kept as a dict's
		d, ok := to.state.(*pickleDict)
		if !ok {
			d = &pickleDict{}
			to.state = d
		}
		d.add(items)
	default:
		return fmt.Errorf("pickle: %w", errStrange)
	}
	return nil
}

func (d *pickleDict) add(items []any) {
	for i := 0; i+1 < len(items); i += 2 {
		d.keys, d.values = append(d.keys, items[i]), append(d.values, items[i+1])
	}
}

// get is the value of a key that is a text, of an object's few fields: many may share one long dict.
func (d *pickleDict) get(key string) any {
	for i, k := range d.keys[:min(len(d.keys), mostFields)] {
		if k == any(key) {
			return d.values[i]
		}
	}
	return nil
}

func (u *unpickler) doObject(op byte) error {
	take := map[byte]int{0x93: 2, 'R': 2, 0x81: 2, 0x92: 3, 'b': 2, 'Q': 1}[op]
	if len(u.stack) < take {
		return fmt.Errorf("pickle: %w", errStrange)
	}
	v := append([]any{}, u.stack[len(u.stack)-take:]...)
	u.stack = u.stack[:len(u.stack)-take]
	switch op {
	case 'c', 'i':
		module, err := u.line()
		if err != nil {
			return err
		}
		name, err := u.line()
		if err != nil {
			return err
		}
		if op == 'c' {
			u.push(pickleGlobal{module, name})
			return nil
		}
		args, err := u.sinceMark()
		u.push(&pickleObject{of: pickleGlobal{module, name}, args: args})
		return err
	case 0x93:
		module, _ := v[0].(string)
		name, _ := v[1].(string)
		u.push(pickleGlobal{module, name})
	case 'R', 0x81, 0x92:
		u.push(&pickleObject{of: v[0], args: v[1]})
	case 'b':
		if o, ok := v[0].(*pickleObject); ok && o.state == nil {
			o.state = v[1]
		}
		u.push(v[0])
	case 'o':
		args, err := u.sinceMark()
		if err != nil || len(args) == 0 {
			return errors.Join(err, errStrange)
		}
		u.push(&pickleObject{of: args[0], args: args[1:]})
	case 'P':
		text, err := u.line()
		u.push(pickleID{text})
		return err
	case 'Q':
		u.push(pickleID{v[0]})
	case 0x98:
	case 0x97:
		u.push(nil)
	default: // an extension's code
		_, err := u.number(1 << (op - 0x82))
		u.push(nil)
		return err
	}
	return nil
}

func (u *unpickler) push(v any) { u.stack = append(u.stack, v) }

func (u *unpickler) pop() (any, error) {
	if len(u.stack) == 0 {
		return nil, fmt.Errorf("pickle: %w", errStrange)
	}
	v := u.stack[len(u.stack)-1]
	u.stack = u.stack[:len(u.stack)-1]
	return v, nil
}

func (u *unpickler) sinceMark() ([]any, error) {
	for i, v := range slices.Backward(u.stack) {
		if _, ok := v.(pickleMark); ok {
			items := append([]any{}, u.stack[i+1:]...)
			u.stack = u.stack[:i]
			return items, nil
		}
	}
	return nil, fmt.Errorf("pickle: %w", errStrange)
}

func (u *unpickler) byte() (byte, error) {
	b, err := u.r.ReadByte()
	if errors.Is(err, io.EOF) {
		return 0, errCut
	}
	u.offset++
	return b, err
}

// number reads one without sign of some bytes, at most 8.
func (u *unpickler) number(width int) (uint64, error) {
	var b [8]byte
	if _, err := io.ReadFull(u.r, b[:width]); err != nil {
		return 0, cut(err)
	}
	u.offset += int64(width)
	return binary.LittleEndian.Uint64(b[:]), nil
}

// text reads n bytes; of a long text it keeps the length alone.
func (u *unpickler) text(n uint64) (any, error) {
	if n > keptText {
		for left := n; left > 0; {
			part := int(min(left, 1<<30))
			got, err := u.r.Discard(part)
			u.offset += int64(got)
			if err != nil {
				return nil, cut(err)
			}
			left -= uint64(part) //nolint:gosec // not negative
		}
		return pickleLong{int64(n)}, nil //nolint:gosec // it was there
	}
	if u.kept += int64(n); u.kept > mostTexts { //nolint:gosec // at most keptText
		return nil, errLarge
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(u.r, b); err != nil {
		return nil, cut(err)
	}
	u.offset += int64(len(b))
	return string(b), nil
}

func (u *unpickler) line() (string, error) {
	b, err := u.r.ReadSlice('\n')
	u.offset += int64(len(b))
	if errors.Is(err, bufio.ErrBufferFull) {
		return "", fmt.Errorf("pickle: %w", errStrange)
	}
	if err != nil {
		return "", cut(err)
	}
	return strings.TrimSuffix(string(b), "\n"), nil
}

func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}
