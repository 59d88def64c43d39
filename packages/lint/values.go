package lint

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/script"
)

// told are the objects of the JSON that a command is given, without its configurations, and the keys of each.
func told() map[string][]string {
	const own = "OWN"
	s := &plan.Script{Commands: map[string]plan.ScriptCommand{own: {Shell: "true"}}}
	out := map[string][]string{}
	for _, command := range []string{plan.CommandStart, own} {
		var all map[string]json.RawMessage
		if err := json.Unmarshal(script.Order{Command: command}.Document(plan.Plan{}, s, ""), &all); err != nil {
			panic("lint: a command's own JSON: " + err.Error())
		}
		for name, text := range all {
			var keys map[string]json.RawMessage
			if name != "configurations" && json.Unmarshal(text, &keys) == nil {
				out[name] = slices.Compact(slices.Sorted(slices.Values(slices.AppendSeq(out[name], maps.Keys(keys)))))
			}
		}
	}
	return out
}

// javaHomes advises on a java_home that this host lacks, or that each host has its own of. One of an image, or with
// other placeholders, is seen when it is run.
func javaHomes(app appdef.App) appdef.Problems {
	const key = "java_home"
	told := map[appdef.Place]bool{}
	var found appdef.Problems
	for i, c := range app.Components {
		home := c.Config[key]
		hosts := slices.Contains(appdef.Placeholders(home), "JAVA_HOME")
		if home == "" || strings.Contains(home, "${") && !hosts || c.Limits.Image != "" {
			continue
		}
		at, ok := app.Places[appdef.Pointer("components", strconv.Itoa(i), "config", key)]
		if !ok {
			at = app.Places[appdef.Pointer("config", key)]
		}
		if told[at] {
			continue
		}
		told[at] = true
		switch {
		case hosts:
			found = append(found, at.Warning(appdef.Quote(home)+", which the package does not set",
				"JAVA_HOME, or a java in PATH, on each host that runs the app",
				"where there is neither, scripts get no java_home; --set JAVA_HOME=PATH gives it"))
		case !filepath.IsAbs(home):
			found = append(found, at.Warning(appdef.Quote(home), "an absolute path", "scripts get it as it is written"))
		case !files.IsFile(filepath.Join(home, "bin/java")):
			found = append(found, at.Warning(appdef.Quote(home)+", which has no bin/java on this host",
				"the folder of a Java, or ${JAVA_HOME}", "where the app runs it must be there, or be given by --set "+
					"JAVA_HOME=PATH"))
		}
	}
	return found
}
