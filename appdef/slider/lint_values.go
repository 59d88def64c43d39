package slider

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// LintValues advises on values that the scripts read and that no component's configuration has. told has the other
// objects of a command's JSON with their keys, such as hostLevelParams.
func LintValues(app appdef.App, scripts []Script, told map[string][]string) appdef.Problems {
	known := map[string][]string{} // with what each instance is told, as the first one is
	java := false
	for _, c := range app.Components {
		dicts, _ := appdef.Resolver{App: &app, Component: c.Name, Tag: 1}.Dictionaries()
		for dict, values := range dicts {
			known[dict] = slices.AppendSeq(known[dict], maps.Keys(values))
		}
		java = java || c.Config["java_home"] != ""
	}
	var found appdef.Problems
	for _, s := range scripts {
		for _, read := range s.Reads {
			want, hint := lacking(read.Path, known, told)
			if slices.Equal(read.Path, []string{"hostLevelParams", "java_home"}) && !java {
				want, hint = "java_home in appConfig", `"${JAVA_HOME}" is that of the host`
			}
			if want != "" {
				path := strings.Join(read.Path, `"]["`)
				got := fmt.Sprintf(`config["%s"], which nobody sets`, path)
				found = append(found, appdef.Place{File: s.Name, Line: read.Line}.Warning(got, want, hint))
			}
		}
	}
	return found.Sort()
}

// lacking says what would give a path its value; want is empty where it has one, or where a shorter path has told it.
func lacking(path []string, known, told map[string][]string) (want, hint string) {
	const dictionaries, fails = "configurations", "the script fails where it uses it"
	switch keys, there := told[path[0]]; {
	case path[0] == dictionaries && len(path) == 2:
		dict := path[1]
		if _, ok := known[dict]; ok {
			return "", ""
		}
		return "the dictionary " + dict + " in configFiles, with configuration/" + dict + ".xml or values site." +
			dict + ".KEY", orElse(appdef.DidYouMean(dict, slices.Sorted(maps.Keys(known))), fails)
	case path[0] == dictionaries && len(path) > 2:
		dict, key := path[1], path[2]
		if has, ok := known[dict]; ok && !slices.Contains(has, key) {
			return "site." + dict + "." + key + " in appConfig, or " + key + " in configuration/" + dict + ".xml",
				orElse(appdef.DidYouMean(key, slices.Compact(slices.Sorted(slices.Values(has)))),
					fails+"; default(\"/configurations/"+dict+"/"+key+"\", VALUE) gives it one")
		}
	case path[0] == "clusterHostInfo" && len(path) == 1:
		return "${COMPONENT_HOST} in a value of appConfig, or the exports at MUSTER_SLIDER_URL",
			"Ambari tells scripts the hosts of components so, Slider does not: " + fails
	case there && len(path) == 2 && !slices.Contains(keys, path[1]):
		return "one of " + strings.Join(keys, ", "), orElse(appdef.DidYouMean(path[1], keys), fails)
	}
	return "", ""
}
