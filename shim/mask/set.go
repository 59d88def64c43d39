package mask

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// shortest is the shortest value that is looked for in texts, in bytes: shorter ones are parts of other words.
const shortest = 6

// Set is the secret values that a process knows. Its methods may be called from any goroutine; the zero Set is ready.
type Set struct {
	mu    sync.RWMutex
	known map[string]bool
	with  *strings.Replacer
}

// Add makes values secret.
func (s *Set) Add(values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.known)
	for _, value := range values {
		if s.known == nil {
			s.known = map[string]bool{}
		}
		for _, form := range forms(value) {
			s.known[form] = true
		}
	}
	if len(s.known) == before {
		return
	}
	all := make([]string, 0, len(s.known))
	for form := range s.known {
		all = append(all, form)
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }) // longest first
	pairs := make([]string, 0, 2*len(all))
	for _, form := range all {
		pairs = append(pairs, form, Shown)
	}
	s.with = strings.NewReplacer(pairs...)
}

// AddNamed makes those values secret whose names say so.
func (s *Set) AddNamed(env map[string]string) {
	for name, value := range env {
		if named(name) {
			s.Add(value)
		}
	}
}

// AddAll makes the values of all names secret.
func (s *Set) AddAll(env map[string]string) {
	for _, value := range env {
		s.Add(value)
	}
}

// forms are a value as it stands in texts: as it is, its lines, quoted by slog and in JSON.
func forms(value string) []string {
	var all []string
	for _, text := range append([]string{value}, strings.Split(value, "\n")...) {
		text = strings.TrimSpace(text)
		if len(text) < shortest || text == Shown {
			continue
		}
		quoted := strconv.Quote(text)
		all = append(all, text, quoted[1:len(quoted)-1])
		var plain, escaped strings.Builder
		for b, html := range map[*strings.Builder]bool{&plain: false, &escaped: true} {
			e := json.NewEncoder(b)
			e.SetEscapeHTML(html)
			if e.Encode(text) == nil {
				all = append(all, strings.TrimSpace(b.String())[1:len(strings.TrimSpace(b.String()))-1])
			}
		}
	}
	return all
}

// Hide is the text without the values.
func (s *Set) Hide(text string) string {
	s.mu.RLock()
	with := s.with
	s.mu.RUnlock()
	if with == nil {
		return text
	}
	return with.Replace(text)
}

// Writer hides the values in what is written. Each Write is a line, or several: a value must not be divided.
func (s *Set) Writer(to io.Writer) io.Writer { return writer{s, to} }

type writer struct {
	set *Set
	to  io.Writer
}

func (w writer) Write(p []byte) (int, error) {
	text := string(p)
	hidden := w.set.Hide(text)
	if hidden == text {
		return w.to.Write(p)
	}
	if _, err := io.WriteString(w.to, hidden); err != nil {
		return 0, err
	}
	return len(p), nil
}
