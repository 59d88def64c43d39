package stream

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/plan"
)

// sequenceWriter writes SequenceFiles for tests, by the same account of the format as the reader.
type sequenceWriter struct {
	compressed, blocks bool
	zip                string // class of the codec
	value              string // class of the values
	every              int    // records between marks; of blocks: in each
	version            byte
}

var someMark = bytes.Repeat([]byte{0xAB, 0xCD}, markSize/2)

func appendText(b []byte, text string) []byte {
	return append(appendVint(b, int64(len(text))), text...)
}

// appendVint is WritableUtils.writeVLong.
func appendVint(b []byte, v int64) []byte {
	if v >= -112 && v <= 127 {
		return append(b, byte(v))
	}
	kind := -112
	if v < 0 {
		v, kind = ^v, -120
	}
	size := 0
	for u := v; u != 0; u >>= 8 {
		size++
	}
	b = append(b, byte(kind-size))
	for i := size - 1; i >= 0; i-- {
		b = append(b, byte(v>>(8*i)))
	}
	return b
}

func (w sequenceWriter) squeeze(b []byte) []byte {
	var out bytes.Buffer
	var z io.WriteCloser
	switch {
	case !w.compressed:
		return b
	case strings.HasSuffix(w.zip, "GzipCodec"):
		z = gzip.NewWriter(&out)
	default:
		z = zlib.NewWriter(&out)
	}
	_, _ = z.Write(b) // into memory
	_ = z.Close()
	return out.Bytes()
}

func (w sequenceWriter) write(texts []string) string {
	class := w.value
	if class == "" {
		class = textClass
	}
	b := append([]byte("SEQ"), max(w.version, 6))
	b = appendText(appendText(b, "org.apache.hadoop.io.LongWritable"), class)
	flag := map[bool]byte{true: 1}
	b = append(b, flag[w.compressed], flag[w.blocks])
	if w.compressed {
		b = appendText(b, w.zip)
	}
	b = binary.BigEndian.AppendUint32(b, 1)
	b = appendText(appendText(b, "made"), "by a test")
	b = append(b, someMark...)
	mark := append(bytes.Clone(escape), someMark...)
	if w.blocks {
		for group := range slices.Chunk(texts, w.every) {
			b = append(b, mark...)
			b = appendVint(b, int64(len(group)))
			var keys, sizes, values []byte
			for i, text := range group {
				keys = binary.BigEndian.AppendUint64(keys, uint64(i))
				value := appendText(nil, text)
				sizes = appendVint(sizes, int64(len(value)))
				values = append(values, value...)
			}
			for _, part := range [][]byte{bytes.Repeat([]byte{8}, len(group)), keys, sizes, values} {
				part = w.squeeze(part)
				b = append(appendVint(b, int64(len(part))), part...)
			}
		}
		return string(b)
	}
	for i, text := range texts {
		if i > 0 && i%w.every == 0 {
			b = append(b, mark...)
		}
		value := w.squeeze(appendText(nil, text))
		b = binary.BigEndian.AppendUint32(b, uint32(8+len(value)))
		b = binary.BigEndian.AppendUint32(b, 8)
		b = binary.BigEndian.AppendUint64(b, uint64(i))
		b = append(b, value...)
	}
	return string(b)
}

func TestVint(t *testing.T) {
	for _, v := range []int64{0, 1, -1, 127, -112, 128, -113, 255, 256, -256, -257, 1 << 20, -(1 << 40), 1<<63 - 1, -1 << 63} {
		got, err := vint(bytes.NewReader(appendVint(nil, v)))
		if err != nil || got != v {
			t.Errorf("%d: got %d, %v", v, got, err)
		}
	}
	for _, cut := range [][]byte{nil, {0x8F}, {0x8E, 1}} {
		if _, err := vint(bytes.NewReader(cut)); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%v: got %v", cut, err)
		}
	}
}

// kinds are the ways that a SequenceFile is written.
func kinds(every int) []sequenceWriter {
	const codec = "org.apache.hadoop.io.compress."
	return []sequenceWriter{
		{every: every},
		{every: every, compressed: true, zip: codec + "DefaultCodec"},
		{every: every, compressed: true, zip: codec + "GzipCodec"},
		{every: every, compressed: true, blocks: true, zip: codec + "DefaultCodec"},
		{every: every, compressed: true, blocks: true, zip: codec + "GzipCodec"},
	}
}

// Each value is read once, in its order, wherever the file is cut.
func TestSequenceHasEachValueOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 12 {
		var texts []string
		for i := range random.IntN(40) {
			texts = append(texts, fmt.Sprintf("%d%s", i, strings.Repeat("x", random.IntN(1<<random.IntN(9)))))
		}
		for _, w := range kinds(1 + random.IntN(10)) {
			m := &memory{files: map[string]string{"/s": w.write(texts)}}
			workers, wanted := 1+random.IntN(4), 1+random.IntN(20)
			var got strings.Builder
			for worker := range workers {
				share, err := Reading{Form: plan.RecordSequence, Want: wanted, Turn: Turn{workers, worker, false}}.Share(m.listed("/s"))
				if err != nil {
					t.Fatal(err)
				}
				text, _ := feed(t, share)
				got.WriteString(text)
			}
			if want := strings.Join(append(texts, ""), "\n"); got.String() != want {
				t.Fatalf("%+v, %d readers: got %q, want %q", w, workers, got.String(), want)
			}
		}
	}
}

// A small file cut in three, at each byte.
func TestSequenceCutAnywhere(t *testing.T) {
	texts := []string{"one", "", "three", "four", "five"}
	for _, w := range kinds(2) {
		file := w.write(texts)
		m := &memory{files: map[string]string{"/s": file}}
		size := int64(len(file))
		for i := int64(1); i < size; i++ {
			f, j := m.listed("/s")[0], min(i+11, size)
			share := &Share{Splits: []Split{{f, 0, i}, {f, i, j - i}, {f, j, size - j}}, reading: Reading{Form: plan.RecordSequence}}
			if got, _ := feed(t, share); got != strings.Join(texts, "\n")+"\n" {
				t.Fatalf("%+v cut at %d and %d: got %q", w, i, j, got)
			}
		}
	}
}

func TestSequenceRefused(t *testing.T) {
	plain := sequenceWriter{every: 2}.write([]string{"one", "two", "three"})
	for _, tt := range []struct{ name, file, want string }{
		{"text", "just lines\n", "it is no SequenceFile"},
		{"empty", "SE", "it is no SequenceFile"},
		{"version", sequenceWriter{every: 1, version: 7}.write(nil), "got version 7, want 6"},
		{"class", sequenceWriter{every: 1, value: "org.apache.hadoop.io.BytesWritable"}.write(nil), "got values of class org.apache.hadoop.io.BytesWritable, want org.apache.hadoop.io.Text"},
		{"codec", sequenceWriter{every: 1, compressed: true, zip: "org.apache.hadoop.io.compress.SnappyCodec"}.write(nil), "got codec org.apache.hadoop.io.compress.SnappyCodec"},
		{"cut off", plain[:len(plain)-2], "unexpected EOF"},
		{"another mark", strings.Replace(plain, string(escape)+string(someMark), string(escape)+strings.Repeat("?", markSize), 1), "another mark"},
		{"value behind the text", strings.Replace(plain, "\x03one", "\x02one", 1), "goes on behind its text"},
	} {
		m := &memory{files: map[string]string{"/s": tt.file}}
		share, err := Reading{Form: plan.RecordSequence, Turn: Turn{Workers: 1}}.Share(m.listed("/s"))
		if err != nil {
			t.Fatal(err)
		}
		err = share.Feed(t.Context(), io.Discard, new(Count))
		if e, ok := errors.AsType[*ReadError](err); !ok || e.Path != "/s" || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
	}
}

// Hadoop itself wrote these (testdata/sequence/README): the values beside them are what `hdfs dfs -text` said of them.
func TestSequenceOfHadoop(t *testing.T) {
	paths, err := filepath.Glob("testdata/sequence/*.seq")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, path := range paths {
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		said, err := os.ReadFile(strings.TrimSuffix(path, ".seq") + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		var want strings.Builder
		for line := range strings.Lines(string(said)) {
			want.WriteString(valueOf(line)) // the key comes first
		}
		m := &memory{files: map[string]string{"/s": string(file)}}
		for workers := 1; workers <= 5; workers++ {
			var got strings.Builder
			for worker := range workers {
				share, err := Reading{Form: plan.RecordSequence, Want: 7, Turn: Turn{workers, worker, false}}.Share(m.listed("/s"))
				if err != nil {
					t.Fatal(err)
				}
				text, _ := feed(t, share)
				got.WriteString(text)
			}
			if got.String() != want.String() {
				t.Errorf("%s among %d: got %d bytes, want %d: %.200q", path, workers, got.Len(), want.Len(), got.String())
			}
		}
	}
}

// FuzzSequence reads anything to its end, from its beginning and from somewhere else, and never takes more records than there
// are bytes.
func FuzzSequence(f *testing.F) {
	for _, w := range kinds(2) {
		f.Add([]byte(w.write([]string{"one", "two", "three", "four"})), uint(9))
	}
	f.Fuzz(func(t *testing.T, file []byte, cut uint) {
		from := &counted{Reader: bufio.NewReaderSize(bytes.NewReader(file), 64)}
		h, err := readSequenceHeader(from)
		if err != nil {
			return
		}
		at := min(int64(cut%(1<<30)), int64(len(file)))
		all := 0
		for _, split := range [][2]int64{{0, at}, {at, int64(len(file))}} {
			begin := max(split[0], h.size)
			begin = min(begin, int64(len(file)))
			from := &counted{Reader: bufio.NewReaderSize(bytes.NewReader(file[begin:]), 64), at: begin}
			s, err := newSequence(h, from, begin, split[1])
			for err == nil {
				if err = s.next(io.Discard); err == nil {
					all++
				}
			}
		}
		if most := 2000 * len(file); all > most { // what deflate can do at the utmost
			t.Errorf("%d records of %d bytes", all, len(file))
		}
	})
}
