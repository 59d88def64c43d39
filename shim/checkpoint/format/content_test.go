package format

import (
	"bytes"
	"errors"
	"testing"
)

// A file may be made shorter while it is looked at: what is gone is no run of zeros.
func TestShorterThanItWas(t *testing.T) {
	c := content{bytes.NewReader([]byte("0123456789")), 20, nil} // ten of what were twenty bytes
	for _, tt := range []struct {
		offset, n int64
		want      string // empty: it is cut off
	}{{0, 10, "0123456789"}, {8, 2, "89"}, {8, 4, ""}, {12, 4, ""}, {10, 1, ""}, {19, 1, ""}, {18, 4, ""}, {-1, 4, ""}} {
		got, err := c.bytesAt(tt.offset, tt.n)
		if tt.want == "" && !errors.Is(err, errCut) || tt.want != "" && (err != nil || string(got) != tt.want) {
			t.Errorf("%d bytes at %d: got %q, %v, want %q", tt.n, tt.offset, got, err, tt.want)
		}
	}
}
