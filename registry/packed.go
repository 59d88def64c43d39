package registry

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ChunkSize is how many bytes of a roster (compressed) or of a definition one key holds at most. A registry takes
// requests of 512 KB, of which base64 needs a quarter.
const ChunkSize = 350_000

// ErrRosterDiffers: the bytes are not those that the directive names.
var ErrRosterDiffers = errors.New("roster differs from its name")

// Packed is a roster as the registry keeps it.
type Packed struct {
	Ref    RosterRef
	Chunks [][]byte // gzip of JSON, cut at ChunkSize
	JSON   []byte   // the roster file's bytes
}

// Pack encodes a roster. Equal rosters give equal bytes: rows are in rank order, maps are sorted, gzip has no time.
func Pack(r Roster) (Packed, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return Packed{}, fmt.Errorf("encode roster of generation %d: %w", r.Gen, err)
	}
	chunks, err := compress(text)
	if err != nil {
		return Packed{}, err
	}
	sum := sha256.Sum256(text)
	digest := hex.EncodeToString(sum[:])
	p := Packed{JSON: text, Chunks: chunks}
	packed := sha256.Sum256(bytes.Join(chunks, nil))
	p.Ref = RosterRef{
		ID: rosterID(r.Gen, digest), Chunks: len(p.Chunks), Bytes: len(text), SHA256: digest,
		Packed: hex.EncodeToString(packed[:]),
	}
	return p, nil
}

// Repack packs a roster file's bytes again. What a later build has added to them is not lost. The error is
// ErrRosterDiffers if they are not the roster that the reference names.
func (ref RosterRef) Repack(text []byte) ([][]byte, error) {
	if err := ref.verify(text); err != nil {
		return nil, err
	}
	chunks, err := compress(text)
	if err == nil && len(chunks) != ref.Chunks {
		err = fmt.Errorf("%w: roster %s: got %d chunks, want %d", ErrRosterDiffers, ref.ID, len(chunks), ref.Chunks)
	}
	return chunks, err
}

// compress is a roster file's bytes in chunks.
func compress(text []byte) ([][]byte, error) {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write(text); err != nil {
		return nil, fmt.Errorf("compress roster: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress roster: %w", err)
	}
	return cut(z.Bytes(), ChunkSize), nil
}

// Unpack decodes a packed roster and checks it against the reference. It also returns the bytes of the roster file. The
// error is ErrRosterDiffers if the content differs.
func Unpack(ref RosterRef, packed []byte) (Roster, []byte, error) {
	text, err := ref.text(packed)
	if err != nil {
		return Roster{}, nil, err
	}
	if err := ref.verify(text); err != nil {
		return Roster{}, nil, err
	}
	var r Roster
	if err := json.Unmarshal(text, &r); err != nil {
		return Roster{}, nil, fmt.Errorf("decode roster %s: %w", ref.ID, err)
	}
	return r, text, nil
}

// mostRoster bounds a roster, in bytes: a gang of a hundred thousand has a tenth. A few packed bytes can be any number
// of zeros.
const mostRoster = 256 << 20

// text is the roster file's bytes, not verified.
func (ref RosterRef) text(packed []byte) ([]byte, error) {
	if ref.Bytes > mostRoster {
		return nil, fmt.Errorf("%w: roster %s: got %d bytes, want at most %d", ErrRosterDiffers, ref.ID, ref.Bytes,
			mostRoster)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack roster %s: %w", ref.ID, err)
	}
	text, err := io.ReadAll(io.LimitReader(z, int64(ref.Bytes)+1))
	if err != nil {
		return nil, fmt.Errorf("unpack roster %s: %w", ref.ID, err)
	}
	return text, nil
}

// Verify checks a packed roster against the reference without decoding it. Only bytes that another build has packed
// must be unpacked for that. The error is ErrRosterDiffers if the content differs.
func (ref RosterRef) Verify(packed []byte) error {
	if sum := sha256.Sum256(packed); hex.EncodeToString(sum[:]) == ref.Packed {
		return nil
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return fmt.Errorf("%w: unpack roster %s: %w", ErrRosterDiffers, ref.ID, err)
	}
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(z, int64(ref.Bytes)+1))
	if err != nil {
		return fmt.Errorf("%w: unpack roster %s: %w", ErrRosterDiffers, ref.ID, err)
	}
	return ref.compare(int(n), hex.EncodeToString(sum.Sum(nil)))
}

// verify checks a roster file's bytes against the reference; the error wraps ErrRosterDiffers.
func (ref RosterRef) verify(text []byte) error {
	sum := sha256.Sum256(text)
	return ref.compare(len(text), hex.EncodeToString(sum[:]))
}

func (ref RosterRef) compare(size int, digest string) error {
	if digest != ref.SHA256 || size != ref.Bytes {
		return fmt.Errorf("%w: roster %s: got %d bytes with sha256 %s, want %d with %s",
			ErrRosterDiffers, ref.ID, size, digest, ref.Bytes, ref.SHA256)
	}
	return nil
}

func rosterID(gen int, digest string) string { return fmt.Sprintf("%d-%s", gen, digest[:12]) }

func cut(b []byte, size int) [][]byte {
	chunks := [][]byte{}
	for len(b) > size {
		chunks = append(chunks, b[:size:size])
		b = b[size:]
	}
	return append(chunks, b)
}
