package format

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// opened is a text as an opened file.
func opened(text []byte) content {
	return content{bytes.NewReader(text), int64(len(text)), func() error { return nil }}
}

// endless is a file that begins with a head and goes on with one byte; it takes no memory.
type endless struct {
	head []byte
	fill byte
	read int64
}

func (e *endless) ReadAt(b []byte, at int64) (int, error) {
	e.read += int64(len(b))
	for i := range b {
		if b[i] = e.fill; at+int64(i) < int64(len(e.head)) {
			b[i] = e.head[at+int64(i)]
		}
	}
	return len(b), nil
}

// soon fails where something takes so long that it might as well never end. What it does takes milliseconds.
func soon(t *testing.T, what string, do func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(30 * time.Second):
		t.Fatalf("%s: no answer within 30 s", what)
		return nil
	}
}

// A file that became shorter after it was opened is cut off; what is missing of it is no zeros.
func TestFileThatShrinks(t *testing.T) {
	c := opened([]byte("0123456789"))
	c.size = 20 // as it was
	if b, err := c.bytesAt(5, 10); !errors.Is(err, errCut) {
		t.Errorf("got %q, %v, want that it is cut off", b, err)
	}
	if b, err := c.bytesAt(5, 5); err != nil || string(b) != "56789" {
		t.Errorf("got %q, %v", b, err)
	}
}

// Names cost nothing: a part of so many that nobody could have them is no part.
func TestPartsOfMany(t *testing.T) {
	for _, name := range []string{"model.ckpt-1.data-00000-of-999999999999999999", "model.ckpt-1-00000-of-999999999999999999"} {
		err := soon(t, name, func() error {
			found, err := Rule{Framework: "tensorflow"}.Look(fstest.MapFS{name: {Data: []byte("x")}, "model.ckpt-1.index": {Data: []byte("x")}})
			if len(found.Whole) > 0 {
				t.Errorf("%s: counts", name)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// row is a row of a table's block that shares its key's first bytes with the one before.
func row(shared int, key string, value []byte) []byte {
	b := binary.AppendUvarint(nil, uint64(shared)) //nolint:gosec // not negative
	b = binary.AppendUvarint(b, uint64(len(key)))
	b = binary.AppendUvarint(b, uint64(len(value)))
	return append(append(b, key...), value...)
}

func placed(at, n int) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(at)), uint64(n)) //nolint:gosec // not negative
}

// tableOf is a table with one block of rows, which its index names so many times.
func tableOf(rows []byte, times int) []byte {
	sealed := func(b []byte) []byte {
		b = append(binary.LittleEndian.AppendUint32(b, 0), 0) // no restarts; not compressed
		return binary.LittleEndian.AppendUint32(b, masked(crc32.Checksum(b, castagnoli)))
	}
	text := sealed(rows)
	n := len(text)
	var index []byte
	for range times {
		index = append(index, row(0, "k", placed(0, n-trailerBytes))...)
	}
	text = append(text, sealed(index)...)
	footer := append(placed(0, 0), placed(n, len(text)-n-trailerBytes)...)
	footer = append(footer, make([]byte, 40-len(footer))...)
	return append(append(text, footer...), binary.LittleEndian.AppendUint64(nil, tableMagic)...)
}

func TestHostileTables(t *testing.T) {
	if rows, err := readTable(opened(tableOf(append(row(0, "ab", []byte("1")), row(1, "c", []byte("2"))...), 1))); err != nil || string(rows["ac"]) != "2" {
		t.Fatalf("a good table: got %q, %v", rows, err)
	}
	long := row(0, strings.Repeat("k", 1<<20), nil)
	for range 1 << 16 { // 64 GiB of keys in a megabyte and a half
		long = append(long, row(1<<20, "x", nil)...)
	}
	many := row(0, strings.Repeat("k", mostKey-1), nil)
	for range 1 << 16 {
		many = append(many, row(mostKey-1, "x", nil)...)
	}
	big := row(0, "k", make([]byte, 1<<20))
	for name, text := range map[string][]byte{
		"a long key": tableOf(long, 1), "many keys": tableOf(many, 1), "one block again and again": tableOf(big, 200_000),
	} {
		if err := soon(t, name, func() error { _, err := readTable(opened(text)); return err }); err == nil {
			t.Errorf("%s: an index is read", name)
		}
	}
	again := tableOf(big, 200_000)
	if err := soon(t, "one block again and again", func() error { return wholeTable(opened(again)) }); err == nil {
		t.Error("a table whose blocks lie in each other is whole")
	}
}

func TestHostileJSON(t *testing.T) {
	if err := wholeJSON(opened([]byte(strings.Repeat("[", mostNested) + strings.Repeat("]", mostNested)))); err != nil {
		t.Errorf("nested, and whole: %v", err)
	}
	deep := &endless{fill: '['}
	if err := soon(t, "lists in lists", func() error { return wholeJSON(content{deep, 1 << 40, nil}) }); err == nil || deep.read > mostToken {
		t.Errorf("lists in lists: got %v after %d bytes", err, deep.read)
	}
	text := &endless{head: []byte(`{"a": "`), fill: 'x'}
	if err := soon(t, "a text without an end", func() error { return wholeJSON(content{text, 1 << 40, nil}) }); err != nil || text.read > 4*mostToken {
		t.Errorf("a text without an end: got %v after %d bytes, want that it is not looked through", err, text.read)
	}
}

func TestHostileZip(t *testing.T) {
	var text bytes.Buffer
	z := zip.NewWriter(&text)
	long := strings.Repeat("x", 60_000)
	for i := range 600 {
		if _, err := z.CreateRaw(&zip.FileHeader{Name: strconv.Itoa(i) + long}); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	meter := &metered{bytes.NewReader(text.Bytes()), 1 << 60}
	c := content{meter, int64(text.Len()), nil}
	if err := wholeZip(c); err != nil {
		t.Errorf("a directory that is too long to look through: got %v, want that it counts", err)
	}
	if read := 1<<60 - meter.left; read > mostDirectory {
		t.Errorf("%d bytes were read of it, want at most %d", read, mostDirectory)
	}
}

func TestHostileArrays(t *testing.T) {
	b := append([]byte{}, mxnetMagic...)
	b = binary.LittleEndian.AppendUint64(b, 0)
	b = binary.LittleEndian.AppendUint64(b, 1) // one array
	b = binary.LittleEndian.AppendUint32(b, arrayV2)
	b = binary.LittleEndian.AppendUint32(b, 0) // dense
	b = binary.LittleEndian.AppendUint32(b, 2)
	b = binary.LittleEndian.AppendUint64(b, 1<<39) // 2^78 elements: more than a number holds
	b = binary.LittleEndian.AppendUint64(b, 1<<39)
	if err := wholeMXNet(content{&endless{head: b}, 1 << 40, nil}); !errors.Is(err, errCut) {
		t.Errorf("an array of 2^78 elements: got %v, want that it is cut off", err)
	}
	many := append(append([]byte{}, mxnetMagic...), make([]byte, 8)...)
	many = binary.LittleEndian.AppendUint64(many, 1<<60)
	if err := soon(t, "arrays without number", func() error { return wholeMXNet(content{&endless{head: many}, 1 << 50, nil}) }); err == nil {
		t.Error("2^60 arrays are whole")
	}
}

// Of a pickle one dict may be the state of many objects.
func TestHostilePickle(t *testing.T) {
	const n = 100_000
	b := []byte("\x80\x04}(")
	for range n {
		b = append(b, "K\x01K\x01"...)
	}
	b = append(b, "uq\x00ctorch\n_StorageInfo\nq\x01]("...)
	for range n {
		b = append(b, "h\x01)Rh\x00b"...)
	}
	b = append(b, "e."...)
	v, err := newUnpickler(bytes.NewReader(b)).next()
	if err != nil {
		t.Fatal(err)
	}
	need := map[string]int64{}
	_ = soon(t, "a dict of many objects", func() error { walk(v, func(v any) { storageInfo(v, need) }); return nil })
	texts := io.MultiReader(strings.NewReader("\x80\x04"), strings.NewReader(strings.Repeat("X\x00\x00\x01\x00"+strings.Repeat("x", keptText), 300)))
	if _, err := newUnpickler(texts).next(); !errors.Is(err, errLarge) {
		t.Errorf("20 MB of texts: got %v, want that they are not kept", err)
	}
}

// FuzzNames has names of files be anything: a folder is looked at all the same, and soon.
func FuzzNames(f *testing.F) {
	for _, name := range []string{
		"model.ckpt-7.index", "model.ckpt-7.data-00000-of-00002", "model.ckpt-7-00000-of-00002", "ckpt-9.pt", "epoch=2-step=300.ckpt", "model-0003.params",
		"model-2.ubj", "model.snapshot_iter_3", "step-30/.metadata", "a-99999999999999999999.pt",
	} {
		f.Add(name, "ckpt-*")
	}
	f.Fuzz(func(t *testing.T, name, pattern string) {
		if !fs.ValidPath(name) || name == "." {
			return // no folder has such a file, and MapFS goes round in circles
		}
		dir := fstest.MapFS{name: {Data: []byte("x")}}
		for _, framework := range []string{"tensorflow", "pytorch", "mxnet", "xgboost", "lightgbm"} {
			found, _ := Rule{Framework: framework}.Look(dir)
			for _, c := range found.Whole {
				if c.Step < 0 || len(c.Files) == 0 {
					t.Errorf("%s: got %+v", framework, c)
				}
			}
		}
		_, _ = Rule{Pattern: pattern}.Look(dir)
		_, _ = Rule{Pattern: pattern, Marker: "{}.done"}.Look(dir)
	})
}
