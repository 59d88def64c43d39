package flags

import (
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// Without --barrier-timeout the app's own muster.barrier.timeout must hold, so the flag's default must not stand in for it.
func TestBarrierIsTheAppsWithoutTheFlag(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want time.Duration
	}{
		{nil, 0},
		{[]string{"--barrier-timeout", "45m"}, 45 * time.Minute},
	} {
		cmd := &cobra.Command{Use: "agent"}
		var f Registry
		f.Register(cmd.Flags())
		if err := cmd.ParseFlags(tt.args); err != nil {
			t.Fatal(err)
		}
		times, err := f.Times()
		if err != nil {
			t.Fatal(err)
		}
		if times.Barrier != tt.want {
			t.Errorf("%v: the barrier's time is %s, want %s", tt.args, times.Barrier, tt.want)
		}
	}
}
