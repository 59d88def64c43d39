package ports

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestListening(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0", ":0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Logf("%s: %v", address, err) // a host without IPv6
			continue
		}
		port := l.Addr().(*net.TCPAddr).Port
		if found, err := Listening("/proc", port); err != nil || !found {
			t.Errorf("%s: got %t, %v", l.Addr(), found, err)
		}
		l.Close()
		if found, err := Listening("/proc", port); err != nil || found {
			t.Errorf("%s when it is closed: got %t, %v", address, found, err)
		}
	}
}

func TestListeningLooksAtThePortAndTheState(t *testing.T) {
	proc := t.TempDir()
	if err := os.Mkdir(filepath.Join(proc, "net"), 0o755); err != nil {
		t.Fatal(err)
	}
	const text = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 0100007F:1F91 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 2 1 0 20 4 30 10 -1
   2: nonsense
`
	if err := os.WriteFile(filepath.Join(proc, "net", "tcp"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for port, want := range map[int]bool{8080: true, 8081: false, 80: false} {
		if got, err := Listening(proc, port); err != nil || got != want {
			t.Errorf("%d: got %t, %v, want %t", port, got, err, want)
		}
	}
}
