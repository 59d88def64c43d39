package consul

import (
	"bytes"
	"cmp"
	"sync"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
)

// seenDirective is the directive as last seen.
type seenDirective struct {
	directive registry.Directive
	value     []byte
	index     uint64 // ModifyIndex
	session   string // of the conductor; "": nobody conducts
}

// order compares two directives by generation, then act. Agents must never go back in this order; a new run raises the
// generation.
func order(a, b registry.Directive) int {
	return cmp.Or(cmp.Compare(a.Gen, b.Gen), cmp.Compare(actRank(a.Act), actRank(b.Act)))
}

func actRank(a registry.Act) int {
	switch a {
	case registry.ActWait:
		return 0
	case registry.ActRun:
		return 1
	case registry.ActStop:
		return 2
	}
	return -1
}

// older tells whether b must not follow a: it goes back, or belongs to another run of the same generation.
func older(a, b registry.Directive) bool {
	o := order(b, a)
	return o < 0 || b.Gen == a.Gen && b.Run != a.Run
}

// directiveWatch remembers the newest directive and wakes those that wait for a change.
type directiveWatch struct {
	mu      sync.Mutex
	last    *seenDirective // nil: none yet
	version int            // how many readings replaced last
	lost    string         // why the registry's data seems lost; "": it is not
	older   bool           // while it is lost: an older directive is there
	changed chan struct{}  // closed at the next change
}

func newDirectiveWatch() *directiveWatch { return &directiveWatch{changed: make(chan struct{})} }

// now returns the last directive, whether the data is lost, and a channel that closes at the next change.
func (s *directiveWatch) now() (last *seenDirective, lost bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, s.lost != "", s.changed
}

func (s *directiveWatch) whyLost() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// wentBack tells that an older directive stands in the place of the last one.
func (s *directiveWatch) wentBack() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost != "" && s.older
}

func (s *directiveWatch) directive() registry.Directive {
	if last, _, _ := s.now(); last != nil {
		return last.directive
	}
	return registry.Directive{}
}

// mark is called before a consistent read, so that its answer does not replace anything learned meanwhile.
func (s *directiveWatch) mark() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// unsure is the mark of a reading that may be older than the last directive: a default read, or the answer to a write.
const unsure = -1

// news is what an observation changed.
type news struct {
	directive bool   // there is another directive
	lost      string // why the data is lost; it was not lost before
	found     bool   // the data was lost, and is back
	doubt     bool   // the reading goes back, or ends a loss: read again with consistency
	handed    bool   // the conductor that was seen has stepped down
}

// observe takes in the reading of key; a nil pair means that the key does not exist. A reading that goes back counts
// only from a consistent read that nothing has overtaken, and only a consistent read ends a loss of the data.
func (s *directiveWatch) observe(key string, pair *api.KVPair, mark int) (news, error) {
	var d registry.Directive
	if pair != nil {
		var err error
		if d, err = decode[registry.Directive](key, pair.Value); err != nil {
			return news{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	back := s.back(d, pair)
	switch {
	case back != "" && mark != s.version:
		return news{doubt: mark == unsure}, nil
	case back == overtaken: // accepted: the same directive under an older index, from a restored copy
	case back != "":
		s.older = pair != nil
		return s.lose(back), nil
	case pair == nil:
		return news{}, nil
	case s.lost != "" && mark == unsure:
		return news{doubt: true}, nil // the answer to a write from before the loss
	}
	n := news{found: s.lost != "", directive: s.last == nil || !bytes.Equal(s.last.value, pair.Value)}
	if s.last != nil && s.last.index == pair.ModifyIndex && s.last.session == pair.Session && s.lost == "" {
		return news{}, nil
	}
	n.handed = s.last != nil && s.last.session != "" && pair.Session == "" && s.last.directive.By != "" && d.By == ""
	s.last = &seenDirective{directive: d, value: pair.Value, index: pair.ModifyIndex, session: pair.Session}
	s.version++
	s.lost = ""
	s.wake()
	return n, nil
}

const overtaken = "the directive's index fell"

// back describes how a reading goes back behind the last directive; "": it does not.
func (s *directiveWatch) back(d registry.Directive, pair *api.KVPair) string {
	switch {
	case s.last == nil:
		return ""
	case pair == nil:
		return "the directive has vanished"
	case d.Verdict != nil && d.Run == s.last.directive.Run && s.last.directive.Verdict == nil:
		return "" // a run's verdict is the last word, also of a registry that went back before it came to that
	case older(s.last.directive, d):
		return "the directive went back"
	case order(s.last.directive, d) == 0 && pair.ModifyIndex < s.last.index:
		return overtaken
	}
	return ""
}

// conclude takes in the verdict of the run, of which no directive told this agent: the registry has lost it.
func (s *directiveWatch) conclude(v registry.Verdict) news {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || s.last.directive.Run != v.Run || s.last.directive.Verdict != nil {
		return news{}
	}
	d := s.last.directive
	d.Act, d.Verdict, d.Why, d.First = registry.ActStop, &v, v.Cause, v.First
	s.last = &seenDirective{directive: d, value: encode(d), index: s.last.index}
	s.version++
	s.wake()
	return news{directive: true}
}

func (s *directiveWatch) lose(why string) news {
	if s.lost != "" {
		return news{}
	}
	s.lost = why
	s.wake()
	return news{lost: why}
}

func (s *directiveWatch) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}
