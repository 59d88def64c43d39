package submit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// Workers are the instances whose progress counts: neither parameter servers nor an evaluator.
func Workers(app *appdef.App) []registry.Instance {
	var workers []registry.Instance
	for _, in := range plan.Instances(app) {
		if role := app.Component(in.Component).Settings.Role; role == appdef.RoleWorker || role == appdef.RoleChief {
			workers = append(workers, in)
		}
	}
	return workers
}

// HBoxProgress is HBox's line about what the workers report, empty while none has reported.
func HBoxProgress(reported map[string]float64, workers []registry.Instance) string {
	sum, some := 0.0, false
	for _, in := range workers {
		if f, ok := reported[in.String()]; ok {
			sum, some = sum+f, true
		}
	}
	if !some {
		return ""
	}
	return fmt.Sprintf("reporter progress:%.2f%%", 100*sum/float64(len(workers)))
}

// HBoxPages are the lines of HBox's client about what an instance serves: a board, or DIGITS.
func HBoxPages(instance string, exports map[string]string) []string {
	var lines []string
	for _, export := range slices.Sorted(maps.Keys(exports)) {
		switch _, name, _ := strings.Cut(export, "."); name {
		case "board":
			lines = append(lines, "board url: "+exports[export])
		case "url":
			lines = append(lines, "Received digits server url from "+instance, "digits server url: "+exports[export])
		}
	}
	return lines
}
