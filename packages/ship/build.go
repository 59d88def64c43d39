package ship

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/packages/sign"
	"github.com/muster-agent/muster/shim/exit"
)

// Built is the answer of muster package build --json.
type Built struct {
	Version int      `json:"version"`
	File    string   `json:"file"`
	SHA256  string   `json:"sha256"`
	Bytes   int64    `json:"bytes"`
	Files   []string `json:"files"`
	LeftOut []string `json:"left_out"`

	// Removed is the signature of a former file; empty: there was none.
	Removed string `json:"-"`
}

// Build packs the folder dir as file. epoch is SOURCE_DATE_EPOCH, by which builders of packages agree on a time
// (reproducible-builds.org); empty: the earliest time of the format.
func Build(dir, file, epoch string) (Built, error) {
	at, err := sourceDate(epoch)
	if err != nil {
		return Built{}, err
	}
	before := signedDigest(file)
	packed, err := packages.Pack(dir, file, packages.PackOptions{Time: at})
	if err != nil {
		return Built{}, exit.With(exit.Definition, err)
	}
	out := Built{
		Version: 1, File: file, SHA256: packed.Digest, Bytes: packed.Bytes,
		Files: append([]string{}, packed.Files...), LeftOut: append([]string{}, packed.LeftOut...),
	}
	if before != "" && before != packed.Digest {
		if err := removeStale(file + sign.Ending); err != nil {
			return out, fmt.Errorf("package build: remove the signature of the former %s: %w", file, err)
		}
		out.Removed = file + sign.Ending
	}
	return out, nil
}

// signedDigest is the sha256 of a file that has a signature beside it; empty: there is none.
func signedDigest(path string) string {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	if _, err := os.Stat(path + sign.Ending); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	digest, err := digestOf(file)
	if err != nil {
		return ""
	}
	return digest
}

func digestOf(r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// latestZip is the last second that a zip can say: 2107-12-31.
const latestZip = 4354819199

func sourceDate(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > latestZip {
		return time.Time{}, exit.Usagef("SOURCE_DATE_EPOCH %q: want seconds since 1970, up to %d", text, latestZip)
	}
	return time.Unix(n, 0), nil
}

// removeStale removes a local file that may be there.
func removeStale(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
