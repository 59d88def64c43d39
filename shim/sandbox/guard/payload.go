package guard

import (
	"encoding/binary"
	"fmt"
	"strings"
)

const (
	magic    = 0x317264617567736d // "msguard1"
	flagUser = 1
)

// Payload is what one start wants. It travels in a sealed memfd, for an environment may be larger
// than any message: `struct config` of src/guard.h, then limits, groups, and NUL-terminated strings.
type Payload struct {
	Argv, Env   []string
	Dir         string // absolute
	RotateBytes uint64 // a log file is renamed at this size; 0: never
	Keep        uint32 // files of one stream in all, the live one included
	Limits      []Limit
	OOMScoreAdj int32
	Nice        int32
	User        *User // nil: the guard's own
}

// Limit is one resource limit, soft and hard alike; Resource is a RLIMIT number.
type Limit struct{ Resource, Value uint64 }

// User is whom the process runs as.
type User struct {
	UID, GID uint32
	Groups   []uint32
}

// Encode returns the payload's bytes. A NUL byte in a string is an error: it would end it early.
func (p Payload) Encode() ([]byte, error) {
	if len(p.Argv) == 0 {
		return nil, fmt.Errorf("guard payload: argv is empty")
	}
	u, flags := User{}, uint32(0)
	if p.User != nil {
		u, flags = *p.User, flagUser
	}
	e := binary.NativeEndian
	var b []byte
	b = e.AppendUint64(b, magic)
	b = e.AppendUint64(b, p.RotateBytes)
	for _, v := range []uint32{
		p.Keep, flags, uint32(len(p.Argv)), uint32(len(p.Env)), uint32(len(p.Limits)), uint32(len(u.Groups)),
		uint32(p.OOMScoreAdj), uint32(p.Nice), u.UID, u.GID,
	} {
		b = e.AppendUint32(b, v)
	}
	for _, l := range p.Limits {
		b = e.AppendUint64(b, l.Resource)
		b = e.AppendUint64(b, l.Value)
	}
	for _, g := range u.Groups {
		b = e.AppendUint32(b, g)
	}
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	return appendStrings(b, p.Dir, p.Argv, p.Env)
}

func appendStrings(b []byte, dir string, lists ...[]string) ([]byte, error) {
	for i, list := range append([][]string{{dir}}, lists...) {
		for _, s := range list {
			if strings.IndexByte(s, 0) >= 0 {
				return nil, fmt.Errorf("guard payload: %s %q holds a NUL byte", [...]string{"dir", "argument", "variable"}[i], strings.SplitN(s, "=", 2)[0])
			}
			b = append(append(b, s...), 0)
		}
	}
	return b, nil
}
