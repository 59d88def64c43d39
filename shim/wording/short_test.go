package wording

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// A cause that is cut still says what was done, why not, and what to do.
func TestShort(t *testing.T) {
	const begin, end = "input data: copy hdfs://nn/a", "over quota; raise it with hdfs dfsadmin -setSpaceQuota"
	for _, long := range []string{strings.Repeat("/folder", 200), strings.Repeat("ä", 700), strings.Repeat("€", 700)} {
		got := Short(begin + long + end)
		if len(got) > 503 || !strings.HasPrefix(got, begin) || !strings.HasSuffix(got, end) || !strings.Contains(got, "…") || !utf8.ValidString(got) {
			t.Errorf("got %q", got)
		}
	}
	if got := Short(begin); got != begin {
		t.Errorf("got %q, want it as it is", got)
	}
}
