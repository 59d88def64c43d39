package proc

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// errStat says that a line of /proc/<pid>/stat is not one.
var errStat = errors.New("not a line of /proc/<pid>/stat")

// Stat is what /proc/<pid>/stat says (proc(5)).
type Stat struct {
	PID     int
	Name    string // up to 15 bytes, any
	State   byte
	PPID    int
	Group   int
	Session int
	Threads int
	Start   uint64 // clock ticks after boot
	// CPU is processor time in clock ticks, its own and that of its children that it has waited for.
	CPU uint64
}

// ID of the process.
func (s Stat) ID() ID { return ID{PID: s.PID, Start: s.Start} }

// Alive is false for a zombie. One with threads is a process whose first thread has ended.
func (s Stat) Alive() bool { return s.State != 'Z' && s.State != 'X' || s.Threads > 1 }

// parseStat reads a line of /proc/<pid>/stat. The name may hold blanks and parentheses: the last one ends it.
func parseStat(line []byte) (Stat, error) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return Stat{}, fmt.Errorf("%w: no name", errStat)
	}
	fields := bytes.Fields(line[end+1:])
	if len(fields) < 20 {
		return Stat{}, fmt.Errorf("%w: %d fields after the name, want 20 or more", errStat, len(fields))
	}
	s := Stat{Name: string(line[open+1 : end]), State: fields[0][0]}
	for _, f := range []struct {
		text []byte
		to   *int
	}{
		{bytes.TrimSpace(line[:open]), &s.PID},
		{fields[1], &s.PPID},
		{fields[2], &s.Group},
		{fields[3], &s.Session},
		{fields[17], &s.Threads},
	} {
		n, err := strconv.Atoi(string(f.text))
		if err != nil {
			return Stat{}, fmt.Errorf("%w: %w", errStat, err)
		}
		*f.to = n
	}
	start, err := strconv.ParseUint(string(fields[19]), 10, 64)
	if err != nil {
		return Stat{}, fmt.Errorf("%w: %w", errStat, err)
	}
	s.Start = start
	for _, text := range fields[11:15] { // utime, stime, cutime, cstime
		n, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			return Stat{}, fmt.Errorf("%w: %w", errStat, err)
		}
		s.CPU += uint64(max(n, 0)) // the last two are signed
	}
	return s, nil
}
