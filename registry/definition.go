package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// ErrDefinitionDiffers: the stored definition is not the one that the app's record names.
var ErrDefinitionDiffers = errors.New("definition differs from its name")

// DefID names a packed definition (AppRecord.Def) by its content: the first 32 hex digits of its sha256.
func DefID(def string) string {
	sum := sha256.Sum256([]byte(def))
	return hex.EncodeToString(sum[:])[:32]
}

// CutDef is a packed definition in chunks of at most ChunkSize.
func CutDef(def string) [][]byte { return cut([]byte(def), ChunkSize) }

// JoinDef joins the chunks of a packed definition and checks them against its name. The error is ErrDefinitionDiffers
// if chunks differ or are missing.
func JoinDef(id string, chunks [][]byte) (string, error) {
	def := string(bytes.Join(chunks, nil))
	if got := DefID(def); got != id {
		return "", fmt.Errorf("%w: got %d bytes with sha256 %s…, want %s…", ErrDefinitionDiffers, len(def), got, id)
	}
	return def, nil
}
