package main

import (
	"slices"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/machine"
)

// TestExitCodesOfJobFiles is the contract between agents and launchers: what a job file has a launcher do comes from the
// verdict's class, whatever number the program itself has ended with, be it one of ours.
func TestExitCodesOfJobFiles(t *testing.T) {
	wants := map[registry.Class]launcher.Answer{
		registry.ClassApp: launcher.Never, registry.ClassOOM: launcher.Never,
		registry.ClassHost: launcher.Elsewhere, registry.ClassGPU: launcher.Elsewhere, registry.ClassPreempted: launcher.Elsewhere,
		registry.ClassNetwork: launcher.Again, registry.ClassData: launcher.Again, registry.ClassImage: launcher.Again,
		registry.ClassTimeout: launcher.Never, registry.ClassDefinition: launcher.Never, registry.ClassNotPermitted: launcher.Never, registry.ClassMuster: launcher.Never,
	}
	codes, err := exit.ParseMap(launcher.ExitMap)
	if err != nil {
		t.Fatal(err)
	}
	answer := func(v registry.Verdict, me registry.Instance) (int, launcher.Answer) {
		final := machine.New()
		final.Instance = me
		final.Directive.Act, final.Directive.Verdict = registry.ActStop, &v
		code := codes.Apply(final.ExitCode(), v.Class)
		all := launcher.Codes()
		at := slices.IndexFunc(all, func(c launcher.Code) bool { return c.Code == code })
		if at < 0 {
			return code, ""
		}
		return code, all[at].Answer
	}
	first, other := registry.Instance{Component: "worker", Index: 0}, registry.Instance{Component: "worker", Index: 1}
	for _, class := range exit.Classes() {
		want, decides := wants[class]
		if !decides && class != registry.ClassStopped && class != registry.ClassLauncher { // those are of no verdict of a failure
			t.Errorf("what is a launcher to do after %s?", class)
		}
		if !decides {
			continue
		}
		if got := launcher.AnswerTo(class); got != want {
			t.Errorf("%s asks for %q; want %q", class, got, want)
		}
		for _, own := range []int{0, 1, 65, 69, 75, 93, 137} { // what the program ended with
			v := registry.Verdict{Outcome: registry.Failed, Class: class, First: first.String(), Exit: &registry.MemberExit{Code: &own}}
			for _, me := range []registry.Instance{first, other} {
				if code, got := answer(v, me); got != want {
					t.Errorf("%s of a program that ended with %d, seen by %s: code %d, %q; want %q", class, own, me, code, got, want)
				}
			}
		}
	}
	for _, outcome := range []registry.Outcome{registry.Succeeded, registry.Stopped} {
		if code, got := answer(registry.Verdict{Outcome: outcome}, first); got != launcher.Done {
			t.Errorf("%s: code %d, %q; want done", outcome, code, got)
		}
	}
}
