package cgroup

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// errFormat says that a file of the kernel does not read as proc(5) and cgroups(7) have it.
var errFormat = errors.New("not as the kernel writes it")

// mount is one cgroup file system of /proc/self/mountinfo.
type mount struct {
	root    string   // the cgroup that is seen at point
	point   string   // folder of the host
	unified bool     // cgroup2
	options []string // of the superblock: names of controllers on v1
}

// parseMounts reads the cgroup file systems of /proc/self/mountinfo (proc(5)).
func parseMounts(text string) ([]mount, error) {
	var mounts []mount
	for line := range strings.Lines(text) {
		before, after, ok := strings.Cut(line, " - ")
		place, super := strings.Fields(before), strings.Fields(after)
		if !ok || len(place) < 6 || len(super) < 2 {
			return nil, fmt.Errorf("mountinfo %q: %w", strings.TrimSpace(line), errFormat)
		}
		if super[0] != "cgroup" && super[0] != "cgroup2" {
			continue
		}
		m := mount{root: unescape(place[3]), point: unescape(place[4]), unified: super[0] == "cgroup2"}
		if len(super) > 2 {
			m.options = strings.Split(super[2], ",")
		}
		mounts = append(mounts, m)
	}
	return mounts, nil
}

// unescape undoes the octal forms of blank, tab, newline and backslash.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// folder is where the cgroup own is seen; not ok when it lies outside of what is mounted.
func (m mount) folder(own string) (string, bool) {
	// In a cgroup namespace what lies above its root reads /.., at both places.
	if strings.HasPrefix(own, "/..") || strings.HasPrefix(m.root, "/..") {
		return "", false
	}
	rel, err := filepath.Rel(m.root, own)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", false
	}
	return filepath.Join(m.point, rel), true
}

// holds tells whether the mount shows the hierarchy of a v1 controller.
func (m mount) holds(controller string) bool {
	return !m.unified && slices.Contains(m.options, controller)
}

// parseOwn reads /proc/<pid>/cgroup: the cgroup by controller, "" for that of v2 (cgroups(7)).
func parseOwn(text string) (map[string]string, error) {
	own := map[string]string{}
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 || !strings.HasPrefix(parts[2], "/") {
			return nil, fmt.Errorf("cgroup of the process %q: %w", strings.TrimSpace(line), errFormat)
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			own[controller] = strings.TrimSuffix(parts[2], " (deleted)")
		}
	}
	return own, nil
}
