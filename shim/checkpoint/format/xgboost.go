package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
)

// xgboost reads models with the rounds as the last number of their names: *.json, *.ubj and *.model. The first two are
// walked to their end; the binary form of *.model before XGBoost 2 has no end that could be told, and counts when it is
// not empty.
func xgboost(dir fs.FS) ([]candidate, error) {
	files, _, err := listed(dir)
	if err != nil {
		return nil, err
	}
	var all []candidate
	for name, f := range files {
		rounds, ok := lastNumber(stem(name))
		if !ok || !slices.Contains([]string{".json", ".ubj", ".model"}, path.Ext(name)) {
			continue
		}
		all = append(all, candidate{step: rounds, path: name, files: []File{f}, check: func(dir fs.FS) (int64, error) {
			if path.Ext(name) == ".model" {
				return rounds, with(dir, name, wholeXGBoost)
			}
			return rounds, with(dir, name, wholeModel)
		}})
	}
	return all, nil
}

// wholeModel is a model in one of the forms that have an end.
func wholeModel(f content) error {
	if head, err := f.bytesAt(0, 1); err != nil || head[0] != '{' {
		return errors.Join(err, errors.New("not a model of XGBoost"))
	}
	return wholeXGBoost(f)
}

// wholeXGBoost tells the forms apart as XGBoost does: text begins with { and a quote or a blank, UBJSON with { and a
// letter.
func wholeXGBoost(f content) error {
	if f.size == 0 {
		return errors.New("it is empty")
	}
	head, err := f.bytesAt(0, min(2, f.size))
	switch {
	case err != nil:
		return err
	case head[0] != '{':
		return nil
	case len(head) < 2:
		return errCut
	case slices.Contains([]byte("\" \t\r\n}"), head[1]):
		return wholeJSON(f)
	}
	u := ubjson{walker{f: f}}
	u.value(u.letter(), 0)
	if u.err == nil && u.at != f.size {
		return fmt.Errorf("UBJSON: %w", errStrange)
	}
	return u.err
}

// ubjson walks a value of Universal Binary JSON, numbers big endian: https://ubjson.org, draft 12.
type ubjson struct{ walker }

const mostDepth = 64

func (u *ubjson) letter() byte { return u.bytes(1)[0] }

var ubjsonBytes = map[byte]uint64{
	'i': 1, 'U': 1, 'I': 2, 'l': 4, 'L': 8, 'd': 4, 'D': 8, 'C': 1, 'Z': 0, 'T': 0,
	'F': 0, 'N': 0,
}

// length reads a number that counts something.
func (u *ubjson) length() uint64 {
	kind := u.letter()
	n, ok := ubjsonBytes[kind]
	if u.err == nil && (!ok || n == 0 || kind == 'd' || kind == 'D' || kind == 'C') {
		u.err = fmt.Errorf("UBJSON: %w", errStrange)
	}
	if u.err != nil {
		return 0
	}
	var b [8]byte
	copy(b[8-n:], u.bytes(int64(n))) //nolint:gosec // at most 8
	return binary.BigEndian.Uint64(b[:])
}

func (u *ubjson) value(kind byte, depth int) {
	if u.err == nil && depth > mostDepth {
		u.err = fmt.Errorf("UBJSON: %w", errStrange)
	}
	if u.err != nil {
		return
	}
	if n, ok := ubjsonBytes[kind]; ok {
		u.skip(n)
		return
	}
	switch kind {
	case 'S', 'H':
		u.skip(u.length())
	case '[':
		u.array(depth)
	case '{':
		u.object(depth)
	default:
		u.err = fmt.Errorf("UBJSON: %w", errStrange)
	}
}

// container reads what may stand before the content: `$` and the type of all, `#` and their number.
func (u *ubjson) container(end byte) (next, of byte, n uint64, counted bool) {
	next = u.letter()
	if next == '$' {
		of = u.letter()
		if next = u.letter(); u.err == nil && next != '#' {
			u.err = fmt.Errorf("UBJSON: %w", errStrange)
		}
	}
	if next == '#' {
		n, counted = u.length(), true
		if u.err == nil && n > uint64(u.f.size) { //nolint:gosec // not negative
			u.err = errCut
		}
		next = end
	}
	return next, of, n, counted
}

func (u *ubjson) array(depth int) {
	next, of, n, counted := u.container(']')
	if size, flat := ubjsonBytes[of]; counted && flat {
		u.skip(n * size)
		return
	}
	for ; counted && n > 0 && u.err == nil; n-- {
		kind := of
		if kind == 0 {
			kind = u.letter()
		}
		u.value(kind, depth+1)
	}
	for !counted && next != ']' && u.err == nil {
		u.value(next, depth+1)
		next = u.letter()
	}
}

func (u *ubjson) object(depth int) {
	next, of, n, counted := u.container('}')
	member := func() {
		u.skip(u.length())
		kind := of
		if kind == 0 {
			kind = u.letter()
		}
		u.value(kind, depth+1)
	}
	for ; counted && n > 0 && u.err == nil; n-- {
		member()
	}
	for !counted && next != '}' && u.err == nil {
		u.at-- // it was the type of the key's length
		member()
		next = u.letter()
	}
}
