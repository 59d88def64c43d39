package registry

import "fmt"

// The protocol versions of this build. A change of the records or of the rules that an agent of the version before
// would break raises newestProto; when such an agent can no longer be mixed in, oldestProto rises too. A field that
// others may ignore raises nothing: they keep it (Later).
const (
	newestProto = 1
	oldestProto = 1
)

// Proto is a span of protocol versions. Of a build: those that it speaks. Of a run: Now is the version that its founder
// speaks, Min the oldest that an agent of the run may speak. Records of builds before the first span have none.
type Proto struct {
	Min   int   `json:"min"`
	Now   int   `json:"now"`
	Later later `json:"-"`
}

// Spoken is the span of this build.
func Spoken() Proto { return Proto{Min: oldestProto, Now: newestProto} }

// OrFirst is the span, or the first version for a record without one.
func (p Proto) OrFirst() Proto {
	if p.Now == 0 {
		return Proto{Min: 1, Now: 1}
	}
	return p
}

// Admits tells whether an agent of that build may take part in a run of this span: it speaks at least Min, and still
// speaks Now or an earlier version.
func (p Proto) Admits(build Proto) bool {
	p, build = p.OrFirst(), build.OrFirst()
	return build.Now >= p.Min && build.Min <= p.Now
}

// String is the span as `muster version` prints it.
func (p Proto) String() string { return fmt.Sprintf("%d..%d", p.Min, p.Now) }
