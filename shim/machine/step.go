package machine

// Step is the machine: what the event changes and what is to be done. It has no clock and no I/O.
func Step(s State, e Event) (State, []Effect) {
	if s.Phase.Final() || e.Attempt != 0 && e.Attempt != s.Attempt {
		return s, nil // an answer to an older attempt, or too late for anything
	}
	before := s
	s = s.absorb(e)
	if e.Kind == Progressed { // in any phase, and it changes none
		return s, s.commit(before)
	}
	for _, r := range rules {
		if r.From != s.Phase || r.On != e.Kind || !r.If.test(s, e) {
			continue
		}
		s.Phase = r.To
		var effects []Effect
		for _, a := range r.Do {
			effects = append(effects, a.make(&s, e)...)
		}
		return s, effects
	}
	return s, nil
}

// commit tells the registry of a step that is newer than any before.
func (s State) commit(before State) []Effect {
	if s.Step <= before.Step || s.Gen == 0 {
		return nil
	}
	return []Effect{{Kind: DoCommit, Gen: s.Gen, Attempt: s.Attempt, Step: s.Step}}
}
