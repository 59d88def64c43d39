package data

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/file"
)

func localStore(t *testing.T) store.Store {
	t.Helper()
	opened, _, err := file.Open(t.Context(), "file:/")
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// someLines has lines of all kinds of length and end.
func someLines(random *rand.Rand) string {
	var b strings.Builder
	for range random.IntN(60) {
		fmt.Fprintf(&b, "%d%s", random.IntN(1000), strings.Repeat("x", random.IntN(1<<random.IntN(8))))
		b.WriteString([]string{"\n", "\r\n", "\r", "\n\n", "\tv\n", "\n"}[random.IntN(6)])
	}
	if random.IntN(2) == 0 {
		b.WriteString("the last has no end")
	}
	return b.String()
}

// noiseOf does not get smaller.
func noiseOf(size int) string {
	random := rand.NewChaCha8([32]byte{})
	b := make([]byte, size)
	_, _ = random.Read(b) // it never fails
	for i := range b {
		b[i] = 'a' + b[i]%26
	}
	return string(b)
}

var errGone = errors.New("gone")
