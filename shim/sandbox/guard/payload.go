package guard

import (
	"encoding/binary"
	"fmt"
	"strings"
)

const (
	magic = 0x327264617567736d // "msguard2"

	flagUser       = 1
	flagCaps       = 2
	flagNoNewPrivs = 4
	flagUmask      = 8
	flagTerminal   = 16
	flagLinger     = 32
	flagAwaited    = 64
	flagStdin      = 128
	flagStdout     = 256

	// sockFilterSize is the length of a struct sock_filter in bytes.
	sockFilterSize = 8
	// filterMax is BPF_MAXINSNS, the most instructions that the kernel takes.
	filterMax = 4096
)

// Payload is what one start or exec wants. It travels in a sealed memfd, for an environment may be larger
// than any message: `struct config` of src/guard.h, then limits, filter, groups, and NUL-terminated strings.
type Payload struct {
	Argv, Env   []string
	Dir         string // absolute
	RotateBytes uint64 // a log file is renamed at this size; 0: never
	Keep        uint32 // files of one stream in all, the live one included
	Limits      []Limit
	OOMScoreAdj int32
	Nice        int32
	User        *User   // nil: the guard's own
	Caps        *uint64 // all capabilities that it may have, as 1 << CAP_*; nil: not touched. Only root has any
	NoNewPrivs  bool
	Umask       *uint32 // nil: the guard's own
	// Filter is an array of struct sock_filter (seccomp(2)), installed right before execve; it brings
	// NoNewPrivs. It must permit execve, and write and exit_group so that an execve that fails is reported as such.
	Filter   []byte
	Terminal bool // of an exec: on a terminal of its own
	Linger   bool // of a start: it may leave a daemon
	Awaited  bool // of an exec: what the app leaves is killed only after the exec has ended
	Stdin    bool // of a start: the agent sends its stdin; else it is /dev/null
	Stdout   bool // of a start: the agent sends its stdout; else that is logged
}

// Limit is one resource limit; Resource is a RLIMIT number.
type Limit struct{ Resource, Soft, Hard uint64 }

// User is the user that the process runs as.
type User struct {
	UID, GID uint32
	Groups   []uint32
}

// Encode returns the payload's bytes. A NUL byte in a string is an error: it would end it early.
func (p Payload) Encode() ([]byte, error) {
	if len(p.Argv) == 0 {
		return nil, fmt.Errorf("guard payload: argv is empty")
	}
	if n := len(p.Filter); n%sockFilterSize != 0 || n > filterMax*sockFilterSize {
		return nil, fmt.Errorf("guard payload: seccomp filter of %d bytes, want a multiple of %d up to %d", n,
			sockFilterSize, filterMax*sockFilterSize)
	}
	var u User
	if p.User != nil {
		u = *p.User
	}
	var caps uint64
	if p.Caps != nil {
		caps = *p.Caps
	}
	var umask uint32
	if p.Umask != nil {
		umask = *p.Umask
	}
	e := binary.NativeEndian
	var b []byte
	for _, v := range []uint64{magic, p.RotateBytes, caps} {
		b = e.AppendUint64(b, v)
	}
	for _, v := range []uint32{
		p.Keep, p.flags(), uint32(len(p.Argv)), uint32(len(p.Env)), uint32(len(p.Limits)), uint32(len(u.Groups)),
		uint32(len(p.Filter) / sockFilterSize), umask, uint32(p.OOMScoreAdj), uint32(p.Nice), u.UID, u.GID,
	} {
		b = e.AppendUint32(b, v)
	}
	for _, l := range p.Limits {
		b = e.AppendUint64(b, l.Resource)
		b = e.AppendUint64(b, l.Soft)
		b = e.AppendUint64(b, l.Hard)
	}
	b = append(b, p.Filter...)
	for _, g := range u.Groups {
		b = e.AppendUint32(b, g)
	}
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	return appendStrings(b, p.Dir, p.Argv, p.Env)
}

func (p Payload) flags() uint32 {
	var flags uint32
	for _, f := range []struct {
		set  bool
		flag uint32
	}{
		{p.User != nil, flagUser},
		{p.Caps != nil, flagCaps},
		{p.NoNewPrivs, flagNoNewPrivs},
		{p.Umask != nil, flagUmask},
		{p.Terminal, flagTerminal},
		{p.Linger, flagLinger},
		{p.Awaited, flagAwaited},
		{p.Stdin, flagStdin},
		{p.Stdout, flagStdout},
	} {
		if f.set {
			flags |= f.flag
		}
	}
	return flags
}

func appendStrings(b []byte, dir string, lists ...[]string) ([]byte, error) {
	for i, list := range append([][]string{{dir}}, lists...) {
		for _, s := range list {
			if strings.IndexByte(s, 0) >= 0 {
				return nil, fmt.Errorf("guard payload: %s %q holds a NUL byte",
					[...]string{"dir", "argument", "variable"}[i], strings.SplitN(s, "=", 2)[0])
			}
			b = append(append(b, s...), 0)
		}
	}
	return b, nil
}
