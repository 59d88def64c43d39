package conductor

import "github.com/muster-agent/muster/registry"

// result is the result of an instance that counts.
type result int

const (
	noResult result = iota
	endedWell
	failedForGood
)

// resultOf tells whether an instance has a result that counts under this directive. In the instance scope a result
// holds until muster.retry restarts the gang; in the gang scope it belongs to its generation.
func resultOf(m registry.Member, d registry.Directive, scope string) result {
	if m.Inc == "" || m.Run != d.Run {
		return noResult
	}
	gen := resultGen(m)
	if gen < d.Retries.Gen {
		return noResult
	}
	if scope != registry.ScopeInstance && gen != d.Gen {
		return noResult
	}
	switch {
	case m.Phase == registry.PhaseEnded:
		return endedWell
	case m.Phase == registry.PhaseFailed && m.Exit != nil && m.Exit.Final:
		return failedForGood
	}
	return noResult
}

// resultGen is the generation that a member's result belongs to.
func resultGen(m registry.Member) int {
	if m.Exit == nil {
		return m.Gen
	}
	return max(m.Gen, m.Exit.Gen)
}

// free tells whether failures of a class cost no budget: the app did not cause them.
func free(c registry.Class) bool {
	return c == registry.ClassLauncher || c == registry.ClassRegistry || c == registry.ClassFlex ||
		c == registry.ClassMismatch
}

// verdictClass is the class that a verdict may have: some classes are only for reports.
func verdictClass(c registry.Class) registry.Class {
	switch c {
	case registry.ClassNone:
		return registry.ClassApp
	case registry.ClassLauncher:
		return registry.ClassPreempted
	case registry.ClassRegistry:
		return registry.ClassHost
	case registry.ClassFlex, registry.ClassMismatch:
		return registry.ClassMuster
	case registry.ClassApp, registry.ClassOOM, registry.ClassGPU, registry.ClassHost, registry.ClassNetwork,
		registry.ClassData, registry.ClassImage, registry.ClassPreempted, registry.ClassStopped,
		registry.ClassTimeout, registry.ClassDefinition, registry.ClassNotPermitted, registry.ClassMuster:
	}
	return c
}
