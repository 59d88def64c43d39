package manager

import "testing"

func TestWhatIsOnItsWay(t *testing.T) {
	for _, tt := range []struct {
		leaving bool
		moving  string
		want    string
	}{
		{false, "", ""},
		{false, "3 of 9 files, 1.0 MiB, 0.5 MiB/s", "inputs: 3 of 9 files, 1.0 MiB, 0.5 MiB/s"},
		{true, "", "its process is over, its outputs are being left"},
		{true, "3 of 9 files, 1.0 MiB, 0.5 MiB/s", "its process is over, its outputs are being left: 3 of 9 files, 1.0 MiB, 0.5 MiB/s"},
	} {
		a := Manager{leaving: tt.leaving, moving: tt.moving}
		if got := a.Activity(); got != tt.want {
			t.Errorf("leaving %t, moving %q: got %q, want %q", tt.leaving, tt.moving, got, tt.want)
		}
	}
}
