package main

import (
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// TestNotifier hears what a service manager hears.
func TestNotifier(t *testing.T) {
	for _, tt := range []struct {
		name    string
		started bool
		code    int
		want    []string // beside WATCHDOG=1
	}{
		{"ran", true, 93, []string{"READY=1", "STOPPING=1"}},
		{"failed before the barrier", false, 65, []string{"STOPPING=1"}},
		{"the run was over, and well", false, 0, []string{"READY=1", "STOPPING=1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "n")
			manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
			if err != nil {
				t.Fatal(err)
			}
			defer manager.Close()
			if err := manager.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
				t.Fatal(err)
			}
			t.Setenv("NOTIFY_SOCKET", path)
			t.Setenv("WATCHDOG_USEC", "20000")
			t.Setenv("WATCHDOG_PID", "")
			hear := func() string {
				text := make([]byte, 100)
				n, err := manager.Read(text)
				if err != nil {
					t.Fatal(err)
				}
				return string(text[:n])
			}
			n := newNotifier(slog.New(slog.DiscardHandler))
			if tt.started {
				n.started()
				n.started()
				if said := hear(); said != tt.want[0] {
					t.Fatalf("got %s, want %s", said, tt.want[0])
				}
				if said := hear(); said != "WATCHDOG=1" { // waits for the second half of 20 ms
					t.Fatalf("got %s, want a sign of life", said)
				}
				tt.want = tt.want[1:]
			}
			n.ends(tt.code)
			for _, want := range tt.want {
				said := hear()
				for said == "WATCHDOG=1" {
					said = hear()
				}
				if said != want {
					t.Errorf("got %s, want %s", said, want)
				}
			}
		})
	}
}
