package registry

// result is what an instance came to, as far as it counts.
type result int

const (
	unsettled result = iota
	endedWell
	failedForGood
)

// settled tells whether an instance has come to a result that counts under this directive. In the
// instance scope a result holds until the gang is formed anew by muster.retry; a gang's results belong
// to their generation.
func settled(m Member, d Directive, scope string) result {
	if m.Inc == "" || m.Run != d.Run {
		return unsettled
	}
	gen := m.resultGen()
	if gen < d.Retries.Gen {
		return unsettled
	}
	if scope != ScopeInstance && gen != d.Gen {
		return unsettled
	}
	switch {
	case m.Phase == PhaseEnded:
		return endedWell
	case m.Phase == PhaseFailed && m.Exit != nil && m.Exit.Final:
		return failedForGood
	}
	return unsettled
}

// resultGen is the generation that a member's result belongs to.
func (m Member) resultGen() int {
	if m.Exit == nil {
		return m.Gen
	}
	return max(m.Gen, m.Exit.Gen)
}

// free tells the classes that no budget is charged for: nothing that the app did.
func (c Class) free() bool {
	return c == ClassLauncher || c == ClassRegistry || c == ClassFlex || c == ClassMismatch
}

// verdict is the class that a verdict may have: some classes are only for reports.
func (c Class) verdict() Class {
	switch c {
	case ClassNone:
		return ClassApp
	case ClassLauncher:
		return ClassPreempted
	case ClassRegistry:
		return ClassHost
	case ClassFlex, ClassMismatch:
		return ClassMuster
	case ClassApp, ClassOOM, ClassGPU, ClassHost, ClassNetwork, ClassData, ClassImage, ClassPreempted, ClassStopped,
		ClassTimeout, ClassDefinition, ClassNotPermitted, ClassMuster:
	}
	return c
}
