package sign

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"aead.dev/minisign"
)

// Ending is what the name of a signature adds to that of its file.
const Ending = ".minisig"

// mostSignature bounds a signature's text, in bytes: both comments are a stranger's.
const mostSignature = 64 << 10

// mostLegacy bounds a file under a signature of the older kind, in bytes: it is held in memory. It is minisign's bound.
const mostLegacy = 1 << 30

// Signature is what FILE.minisig says. Until Verify has returned it, nobody vouches for it.
type Signature struct {
	KeyID   string `json:"key_id"`  // as KeyID prints it
	Comment string `json:"comment"` // the trusted one: it is signed too
	Legacy  bool   `json:"legacy"`  // of the file itself rather than its hash
	Digest  string `json:"sha256"`  // of the bytes that were verified; Read leaves it empty

	parsed minisign.Signature
	text   []byte
}

// Read reads a signature without checking it. The error wraps fs.ErrNotExist where there is none.
func Read(path string) (Signature, error) {
	text, err := readAtMost(path, mostSignature)
	if err != nil {
		return Signature{}, err
	}
	s := Signature{text: text}
	if err := s.parsed.UnmarshalText(text); err != nil {
		return Signature{}, fmt.Errorf("%s: %w", path, unprefixed(err))
	}
	s.KeyID, s.Comment, s.Legacy = idText(s.parsed.KeyID), s.parsed.TrustedComment, s.parsed.Algorithm == minisign.EdDSA
	return s, nil
}

// Sign writes the signature of file beside it and returns its path. The comment is signed with it; empty, it says the
// time and the file's name as minisign(1) does. An older signature is replaced.
func Sign(file string, key SecretKey, comment string) (path string, err error) {
	if strings.ContainsAny(comment, "\r\n") {
		return "", fmt.Errorf("sign %s: comment: got more than one line", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	hashed := minisign.NewReader(f)
	if _, err := io.Copy(io.Discard, hashed); err != nil {
		return "", fmt.Errorf("sign %s: %w", file, err)
	}
	if comment == "" {
		comment = fmt.Sprintf("timestamp:%d\tfile:%s\thashed", time.Now().Unix(), filepath.Base(file))
	}
	text := hashed.SignWithComments(key.key, comment, "signature from key "+key.ID())
	path = file + Ending
	if err := replace(path, text, 0o644); err != nil {
		return "", fmt.Errorf("sign %s: %w", file, err)
	}
	return path, nil
}

// Verify checks that one of the keys has signed file, by the signature at path. Its errors wrap ErrUnsigned where there
// is no signature, *unknownKeyError where another key has signed, ErrForged where the file or the comment is not what
// was signed.
func Verify(file, path string, keys ...PublicKey) (Signature, error) {
	for _, path := range []string{file, path} { // a pipe would wait for somebody to write to it
		switch info, err := os.Stat(path); {
		case err == nil && !info.Mode().IsRegular():
			return Signature{}, fmt.Errorf("verify %s: got no plain file, want one", path)
		case err != nil && path == file:
			return Signature{}, fmt.Errorf("verify: %w", err)
		}
	}
	s, err := Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Signature{}, fmt.Errorf("verify %s: %w: no %s", file, ErrUnsigned, path)
	}
	if err != nil {
		return Signature{}, fmt.Errorf("verify %s: %w", file, err)
	}
	var candidates []PublicKey
	unknown := &unknownKeyError{Got: s.KeyID}
	for _, k := range keys {
		unknown.Want = append(unknown.Want, k.ID())
		if k.key.ID() == s.parsed.KeyID {
			candidates = append(candidates, k)
		}
	}
	if len(candidates) == 0 {
		return Signature{}, fmt.Errorf("verify %s: %w", file, unknown)
	}
	if s.Digest, err = s.verify(file, candidates); err != nil {
		return Signature{}, fmt.Errorf("verify %s: %w", file, err)
	}
	return s, nil
}

// verify reads the file once and returns the sha256 of what it read. Ids of keys are chosen by whoever makes them: two
// keys may have the same.
func (s Signature) verify(file string, keys []PublicKey) (digest string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	hashed := minisign.NewReader(io.TeeReader(f, sum))
	// Which of both it is, the signature says: the hash of one file could pass for the text of another.
	check := func(key minisign.PublicKey) bool { return hashed.Verify(key, s.text) }
	if s.Legacy {
		text, err := io.ReadAll(io.LimitReader(hashed, mostLegacy+1))
		if err != nil {
			return "", err
		}
		if len(text) > mostLegacy {
			return "", fmt.Errorf("got more than %d bytes under a signature of the older kind; sign it anew",
				mostLegacy)
		}
		check = func(key minisign.PublicKey) bool { return minisign.Verify(key, text, s.text) }
	} else if _, err := io.Copy(io.Discard, hashed); err != nil {
		return "", err
	}
	for _, k := range keys {
		if check(k.key) {
			return hex.EncodeToString(sum.Sum(nil)), nil
		}
	}
	return "", fmt.Errorf("%w: it is not what key %s has signed", errForged, s.KeyID)
}

// ErrUnsigned is wrapped by the error of Verify for a file without a signature.
var ErrUnsigned = errors.New("not signed")

// errForged is wrapped by the error of Verify for a file, or a trusted comment, that is not what was signed.
var errForged = errors.New("wrong signature")

// unknownKeyError says that a key has signed that nobody asked for.
type unknownKeyError struct {
	Got  string   // id of the key
	Want []string // ids of the keys
}

func (e *unknownKeyError) Error() string {
	return fmt.Sprintf("signed by key %s, want %s", e.Got, strings.Join(e.Want, " or "))
}

// idText prints an id as minisign(1) does.
func idText(id uint64) string { return fmt.Sprintf("%016X", id) }

// unprefixed takes the library's own name out of a sentence that goes on from ours.
func unprefixed(err error) error { return errors.New(strings.TrimPrefix(err.Error(), "minisign: ")) }

func readAtMost(path string, most int64) (text []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err = io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s: got more than %d bytes", path, most)
	}
	return text, err
}

// replace writes a file beside its place and renames it.
func replace(path string, text []byte, mode fs.FileMode) error {
	part, err := os.CreateTemp(filepath.Dir(path), ".muster-sign-")
	if err != nil {
		return err
	}
	_, err = io.Copy(part, bytes.NewReader(text))
	err = errors.Join(err, part.Chmod(mode), part.Sync(), part.Close())
	if err == nil {
		err = os.Rename(part.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(part.Name()))
	}
	return err
}
