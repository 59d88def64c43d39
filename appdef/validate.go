package appdef

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Validate judges an App that a dialect has loaded and settled, by the rules of all dialects. It returns all problems
// at once, sorted; the App is not changed.
func Validate(a *App) Problems {
	v := validation{app: a, where: map[string]int{}}
	for i, c := range a.Components {
		if _, twice := v.where[c.Name]; !twice {
			v.where[c.Name] = i
		}
	}
	checks := []func(){
		v.components, v.counts, v.priorities, v.exportGroups, v.framework, v.commands, v.references,
		v.size, v.jobSecrets,
	}
	if _, nameless := v.where[""]; !nameless { // else whatever refers to it would seem to refer to nothing
		checks = append(checks, v.exportRefs, v.orders, v.texts)
	}
	for _, check := range checks {
		check()
	}
	return v.found.Sort()
}

// names lists the components, each name once.
func (v *validation) names() []string {
	var names []string
	for i, c := range v.app.Components {
		if v.where[c.Name] == i {
			names = append(names, c.Name)
		}
	}
	return names
}

// jobSecrets checks references to secrets of the job file itself, which a package made of it does not have.
func (v *validation) jobSecrets() {
	for i, c := range v.app.Components {
		keys := map[string]string{"muster.image.auth": c.Limits.ImageAuth}
		for name, ref := range c.Settings.Secrets {
			keys["muster.secret."+name] = ref
		}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			name, ofJob := strings.CutPrefix(keys[key], JobSecret)
			if _, there := v.app.JobSecrets[name]; ofJob && !there {
				v.bad(v.app.componentPlace(i, "config", key), quote(keys[key])+" for "+key,
					"file:PATH, env:NAME or keyring:NAME", "only a job file has secrets of its own")
			}
		}
	}
}

// mostInstances limits the instances of a component, against typing errors.
const mostInstances = 1_000_000

// validation is one run of Validate.
type validation struct {
	app   *App
	where map[string]int // component → index
	found Problems
}

func (v *validation) bad(at Place, got, want, hint string) {
	v.found = append(v.found, at.Problem(got, want, hint))
}

func (v *validation) warn(at Place, got, want, hint string) {
	v.found = append(v.found, at.Warning(got, want, hint))
}

// size checks that a registry can hold the definition. The problem points to the longest value.
func (v *validation) size() {
	_, err := pack(*v.app)
	large, ok := errors.AsType[*sizeError](err)
	if !ok { // no dialect makes one that has no JSON
		return
	}
	at, longest := v.app.place("config"), 0
	longer := func(section map[string]string, place func(key string) Place) {
		for _, key := range slices.Sorted(maps.Keys(section)) {
			if len(section[key]) > longest {
				at, longest = place(key), len(section[key])
			}
		}
	}
	longer(v.app.Config, func(key string) Place { return v.app.place("config", key) })
	for i, c := range v.app.Components {
		longer(c.Config, func(key string) Place { return v.app.componentPlace(i, "config", key) })
	}
	v.bad(at, large.got(), large.want(),
		fmt.Sprintf("the longest value has %d bytes; what is large belongs into a file of the package, which the "+
			"registry does not keep", longest))
}

// components checks the names.
func (v *validation) components() {
	if len(v.app.Components) == 0 {
		v.bad(v.app.place("components"), "no components", "at least one component", "")
	}
	for i, c := range v.app.Components {
		at := v.app.componentPlace(i, "name")
		if first := v.where[c.Name]; first != i {
			v.bad(at, "a second component "+quote(c.Name), "a name of its own",
				"the first is at "+v.app.componentPlace(first, "name").String())
		}
		if c.Name != "" && !ValidName(c.Name) {
			v.bad(at, quote(c.Name), "a name of letters, digits and . _ ~ -, at most 63, a letter or digit first", "")
		}
	}
}

// counts checks instances against the component's own limits.
func (v *validation) counts() {
	total, declared := 0, 0
	for i, c := range v.app.Components {
		at := v.app.componentPlace(i, "instances")
		impossible := c.MaxInstances >= 0 && c.MinInstances > c.MaxInstances
		if impossible {
			v.bad(v.app.componentPlace(i, "min_instances"), strconv.Itoa(c.MinInstances),
				"at most maxInstanceCount, "+strconv.Itoa(c.MaxInstances), "")
		}
		switch {
		case c.Category == "CLIENT" && c.Instances > 0:
			v.bad(at, Counted(c.Instances, "instance")+" of a CLIENT", "0", "a client is installed, not run")
		case c.Category == "CLIENT":
			continue
		case c.Instances > mostInstances:
			v.bad(at, strconv.Itoa(c.Instances), "at most "+strconv.Itoa(mostInstances), "")
		case !impossible && (c.Instances < c.MinInstances || c.MaxInstances >= 0 && c.Instances > c.MaxInstances):
			v.bad(at, strconv.Itoa(c.Instances), between(c.MinInstances, c.MaxInstances),
				"minInstanceCount and maxInstanceCount of "+c.Name+" say so")
		}
		total, declared = total+c.Instances, declared+1
		v.completion(i, c)
	}
	if total > mostInstances && len(v.found.Errors()) == 0 {
		v.bad(v.app.place("components"), strconv.Itoa(total)+" instances in all",
			"at most "+strconv.Itoa(mostInstances), "")
	}
	if total == 0 && len(v.app.Components) > 0 && len(v.found.Errors()) == 0 {
		hint := "all components are CLIENTs, which are installed and not run: muster slider client --install " +
			"--package APP --dest DIR"
		if declared > 0 {
			hint = "give --instances " + v.app.Components[slices.IndexFunc(v.app.Components, runs)].Name + "=N"
		}
		at := v.app.place("components")
		v.found = append(v.found, at.Problem("no instance of any component", "at least one", hint).As(NoInstance))
	}
}

// runs tells whether a component may have instances.
func runs(c Component) bool { return c.Category != "CLIENT" }

// Counted is a number with its noun, for sentences: 1 instance, 2 instances.
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

func between(least, most int) string {
	switch {
	case most < 0:
		return strconv.Itoa(least) + " or more"
	case least == most:
		return strconv.Itoa(least)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

// completion warns about counts that can never be reached.
func (v *validation) completion(i int, c Component) {
	for _, limit := range []struct {
		key   string
		count *int
	}{{"muster.complete.minFailed", c.Settings.Complete.MinFailed}, {
		"muster.complete.minSucceeded",
		c.Settings.Complete.MinSucceeded,
	}} {
		_, written := v.app.Origins[c.Name+"."+limit.key]
		if written && limit.count != nil && c.Instances > 0 && *limit.count > c.Instances {
			v.warn(v.keyPlace(i, limit.key), strconv.Itoa(*limit.count),
				"at most the "+Counted(c.Instances, "instance")+" of "+c.Name, "it is never reached")
		}
	}
}

// keyPlace finds where a key of component i was written.
func (v *validation) keyPlace(i int, key string) Place {
	index := strconv.Itoa(i)
	for _, parts := range [][]string{
		{"components", index, "config", key},
		{"components", index, "resources", key},
		{"config", key},
		{"resources", key},
	} {
		if p, ok := v.app.Places[Pointer(parts...)]; ok {
			return p
		}
	}
	return v.app.componentPlace(i, "config", key)
}

// priorities checks that no two components share one. 0 is a priority that the dialect refused.
func (v *validation) priorities() {
	owner := map[int]int{}
	for i, c := range v.app.Components {
		first, taken := owner[c.Priority]
		if !taken {
			owner[c.Priority] = i
			continue
		}
		if c.Priority != 0 && v.app.Components[first].Name != c.Name {
			other := v.app.Components[first].Name
			v.bad(v.app.componentPlace(i, "priority"), strconv.Itoa(c.Priority)+", the priority of "+other,
				"a priority of its own", "")
		}
	}
}

// groupForm is the form of a published group name, in lower case (Slider's registry).
var groupForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_+-]*$`)

// framework checks what the framework's description of its cluster needs.
func (v *validation) framework() {
	switch v.app.Settings.Framework {
	case "tensorflow":
		members, chiefs := 0, 0
		for i, c := range v.app.Components {
			if inClusterSpec(c) {
				members += c.Instances
			}
			if c.Settings.Role != RoleChief {
				continue
			}
			if chiefs += c.Instances; c.Instances > 0 && chiefs > 1 {
				v.bad(v.app.componentPlace(i, "instances"), Counted(chiefs, "chief"), "one chief at most",
					"TensorFlow knows one")
			}
		}
		if members > 1 { // one alone needs no cluster
			v.addresses("TensorFlow's ClusterSpec", inClusterSpec)
		}
	case "tony": // its cluster has each task, and a task that is alone finds itself there
		v.addresses("TonY's CLUSTER_SPEC", func(c Component) bool { return c.Settings.Role != RoleService })
	}
}

// inClusterSpec tells the components of TensorFlow's cluster: evaluators and services are outside of it.
func inClusterSpec(c Component) bool {
	return c.Settings.Role == RolePS || c.Settings.Role == RoleWorker || c.Settings.Role == RoleChief
}

// addresses checks that each of these components exports where its instances are found.
func (v *validation) addresses(cluster string, in func(Component) bool) {
	for i, c := range v.app.Components {
		if in(c) && c.Instances > 0 && c.Settings.ClusterExport == (ExportRef{}) {
			v.bad(v.app.componentPlace(i, "comp_exports"), "no export of the form host:port for "+c.Name,
				"the address of each "+c.Name+" for "+cluster,
				"an export with the value ${"+c.Name+"_HOST}:${site.global."+c.Name+".port}, named in its compExports")
		}
	}
}

// commands checks that every component that runs has something to run.
func (v *validation) commands() {
	for i, c := range v.app.Components {
		v.start(i, c)
		v.up(i, c)
		if c.Category == "CLIENT" || c.Settings.CommandFrom != "" || c.Name == "" {
			continue
		}
		if c.Limits.Image != "" {
			continue // its own entrypoint
		}
		hint := ""
		if c.Type == "DOCKER" {
			hint = "the first of dockerContainers, or muster.image, says what to run"
		}
		v.bad(v.app.componentPlace(i), "no command for "+c.Name, "a commandScript, commands or muster.command", hint)
	}
}

// up checks that STATUS can be what muster.up=status makes of it.
func (v *validation) up(i int, c Component) {
	if c.Settings.Up != UpStatus {
		return
	}
	has := c.CommandScript != nil || slices.ContainsFunc(c.Commands, func(k Command) bool { return k.Name == "STATUS" })
	switch at := v.keyPlace(i, upKey); {
	case !has:
		v.bad(at, quote(UpStatus)+" for "+c.Name+", which has no STATUS", "a STATUS command", "or muster.up="+UpProcess)
	case c.Settings.StatusInterval == 0:
		v.bad(at, quote(UpStatus)+" beside muster.status.interval=0", "an interval: STATUS is never asked", "")
	}
}

// start checks a written muster.start against what there is to run.
func (v *validation) start(i int, c Component) {
	if _, written := v.app.Origins[c.Name+"."+startKey]; !written {
		return
	}
	at := v.keyPlace(i, startKey)
	_, command := c.StartCommand()
	switch {
	case c.Settings.CommandFrom == commandKey:
		v.warn(at, quote(c.Settings.Start)+" beside "+commandKey, "one of the two", commandKey+" is what START runs")
	case c.Settings.Start == StartBuiltin && !v.app.Builtin():
		v.bad(at, quote(StartBuiltin)+" with the framework "+v.app.Settings.Framework,
			"a framework with a command of its own, tensorflow", "")
	case c.Settings.Start == StartScript && !command && c.CommandScript == nil:
		v.bad(at, quote(StartScript)+" for "+c.Name+", which has none", "a commandScript or commands", "")
	}
}
