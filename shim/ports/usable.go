package ports

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Usable removes what the kernel gives to outgoing connections or reserves: a port in the
// ephemeral range may be taken by any connect(2) between our release and the app's bind. root is
// the folder that holds proc, "" for the machine. When nothing is left outside the ephemeral range the ports inside it
// are returned, with a warning for people.
func Usable(asked Ranges, root string) (usable Ranges, warning string, err error) {
	if root == "" {
		root = "/"
	}
	dir := filepath.Join(root, "proc/sys/net/ipv4")
	reserved, err := readRanges(filepath.Join(dir, "ip_local_reserved_ports"), ParseRanges)
	if err != nil {
		return nil, "", err
	}
	ephemeral, err := readRanges(filepath.Join(dir, "ip_local_port_range"), parseSpan)
	if err != nil {
		return nil, "", err
	}
	free := asked.Without(reserved)
	if len(free) == 0 {
		return nil, "", fmt.Errorf("ports %s: all are in ip_local_reserved_ports (%s)", asked, reserved)
	}
	if outside := free.Without(ephemeral); len(outside) > 0 {
		return outside, "", nil
	}
	return free, fmt.Sprintf("all ports of %s lie in the ephemeral range %s (ip_local_port_range): "+
		"an outgoing connection may take one just before the process binds it", asked, ephemeral), nil
}

// readRanges: an absent or empty file names no port.
func readRanges(path string, parse func(string) (Ranges, error)) (Ranges, error) {
	b, err := os.ReadFile(path)
	text := strings.TrimSpace(string(b))
	if errors.Is(err, fs.ErrNotExist) || err == nil && text == "" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ranges, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return ranges, nil
}

// parseSpan reads the two numbers of ip_local_port_range.
func parseSpan(text string) (Ranges, error) {
	return ParseRanges(strings.Join(strings.Fields(text), "-"))
}
