package main

import (
	"slices"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim"
	"github.com/muster-agent/muster/shim/render"
)

// TestExitCodesOfJobFiles is the contract between agents and launchers: what a job file has a launcher do comes from the
// verdict's class, whatever number the program itself has ended with, be it one of ours.
func TestExitCodesOfJobFiles(t *testing.T) {
	wants := map[registry.Class]render.Answer{
		registry.ClassApp: render.Never, registry.ClassOOM: render.Never,
		registry.ClassHost: render.Elsewhere, registry.ClassGPU: render.Elsewhere, registry.ClassPreempted: render.Elsewhere,
		registry.ClassNetwork: render.Again, registry.ClassData: render.Again, registry.ClassImage: render.Again,
		registry.ClassTimeout: render.Never, registry.ClassDefinition: render.Never, registry.ClassNotPermitted: render.Never, registry.ClassMuster: render.Never,
	}
	codes, err := parseExitMap(render.ExitMap)
	if err != nil {
		t.Fatal(err)
	}
	answer := func(v registry.Verdict, me registry.Instance) (int, render.Answer) {
		final := shim.State{Instance: me, Code: -1}
		final.Directive.Act, final.Directive.Verdict = registry.ActStop, &v
		code := codes.apply(final.ExitCode(), final)
		all := render.Codes()
		at := slices.IndexFunc(all, func(c render.Code) bool { return c.Code == code })
		if at < 0 {
			return code, ""
		}
		return code, all[at].Answer
	}
	first, other := registry.Instance{Component: "worker", Index: 0}, registry.Instance{Component: "worker", Index: 1}
	for _, class := range classes() {
		want, decides := wants[class]
		if !decides && class != registry.ClassStopped && class != registry.ClassLauncher { // those are of no verdict of a failure
			t.Errorf("what is a launcher to do after %s?", class)
		}
		if !decides {
			continue
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
		if code, got := answer(registry.Verdict{Outcome: outcome}, first); got != render.Done {
			t.Errorf("%s: code %d, %q; want done", outcome, code, got)
		}
	}
}
