package tail

import (
	"strings"
	"testing"
)

func TestBuffer(t *testing.T) {
	b := &Buffer{}
	for range 3 {
		if n, err := b.Write([]byte(strings.Repeat("x", lastBytes-3) + "end")); n != lastBytes || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := b.String(); len(got) != lastBytes || !strings.HasSuffix(got, "end") {
		t.Errorf("kept %d bytes", len(got))
	}
}
