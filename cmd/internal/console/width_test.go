package console

import (
	"bytes"
	"testing"
)

func TestTable(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	rows := [][]string{
		{"worker-0", "running", "a cause that is so long that it has no room beside the others in eighty columns"},
		{"worker-1", "", ""},
	}
	want := "NAME      PHASE    CAUSE\n" +
		"worker-0  running  a cause that is so long that it has no room beside the others\n" +
		"                   in eighty columns\n" +
		"worker-1  -        -\n"
	var out bytes.Buffer
	if err := Table(&out, "NAME PHASE CAUSE", rows); err != nil || out.String() != want {
		t.Errorf("got  %q, %v\nwant %q", &out, err, want)
	}
}
