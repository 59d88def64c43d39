package client

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/muster-agent/muster/shim/launcher/job"
	"github.com/muster-agent/muster/shim/launcher/job/jobtest"
)

func TestForeignUnitsStay(t *testing.T) {
	units := map[string]string{
		"muster-d1.target":   "# The instances of d1 on this host: leave those that it is to run.\n[Unit]\nWants=muster-d1@worker-0.service\n",
		"muster-d1@.service": "# One agent of systemd, written by muster render systemd; privileged: root, which makes containers.\n",
	}
	for _, tt := range []struct {
		name, there string
		foreign     bool
	}{
		{"ours", "# One agent of systemd, written by muster render systemd; unprivileged.\n", false},
		{"somebody's", "[Unit]\nDescription=mine\n", true},
		{"empty", "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			jobtest.Fake(t, "systemctl", "")
			dir := t.TempDir()
			jobtest.Write(t, dir, "muster-d1@.service", tt.there)
			drop := filepath.Join(dir, "muster-d1@worker-7.service.d")
			if err := os.Mkdir(drop, 0o755); err != nil {
				t.Fatal(err)
			}
			jobtest.Write(t, drop, "limits.conf", "[Service]\nMemoryMax=1G\n") // an operator's
			s := &client{Dir: dir, Units: units}
			_, err := s.Start(t.Context())
			if errors.Is(err, job.ErrForeign) != tt.foreign || (err != nil) != tt.foreign {
				t.Errorf("got %v, want foreign: %v", err, tt.foreign)
			}
			text, readErr := os.ReadFile(filepath.Join(dir, "muster-d1@.service"))
			if readErr != nil || (string(text) == tt.there) != tt.foreign {
				t.Errorf("there is %q (%v), want it replaced: %v", text, readErr, !tt.foreign)
			}
			if _, err := os.Stat(filepath.Join(drop, "limits.conf")); err != nil {
				t.Errorf("an operator's own limits: %v", err)
			}
		})
	}
}
