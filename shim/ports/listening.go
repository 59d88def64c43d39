package ports

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// listenState is TCP_LISTEN of the kernel's include/net/tcp_states.h, as proc(5) prints it.
const listenState = "0A"

// Listening tells whether some process of this network listens at the TCP port, without connecting: a program would
// take the connection for a peer's. proc is where the kernel's files are, usually /proc.
func Listening(proc string, port int) (bool, error) {
	for _, name := range []string{"tcp", "tcp6"} {
		found, err := listens(filepath.Join(proc, "net", name), port)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a kernel without IPv6
		}
		if found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// listens reads `sl local_address rem_address st …` with the addresses as HEX:PORT.
func listens(path string, port int) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, fmt.Errorf("look for listeners: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || fields[3] != listenState {
			continue
		}
		_, number, _ := strings.Cut(fields[1], ":")
		if n, err := strconv.ParseUint(number, 16, 16); err == nil && int(n) == port {
			return true, nil
		}
	}
	if err := lines.Err(); err != nil {
		return false, fmt.Errorf("look for listeners: %w", err)
	}
	return false, nil
}
