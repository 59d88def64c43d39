package slider

import (
	"slices"
	"strconv"

	"github.com/muster-agent/muster/appdef"
)

// Key is a key of appConfig or resources that Slider knows and what muster makes of it. The tables are what
// the loader knows, what the schemas describe and what the manual prints; keys of muster's own are appdef.Keys.
type Key struct {
	Name    string
	Default string // as the manual prints it; empty: none
	Meaning string
	Whole   bool // a whole number, in a text or not
	Max     bool // or max: as much as the launcher grants
	Least   int  // of a whole number
	Signed  bool // it may be below 0
}

// ResourceKeys lists Slider's keys of resources (ResourceKeys.java), and YARN's for GPUs, which is one of muster's.
func ResourceKeys() []Key { return slices.Clone(resourceTable[:]) }

// ConfigKeys lists Slider's keys of appConfig besides site.DICTIONARY.KEY.
func ConfigKeys() []Key { return slices.Clone(configTable[:]) }

var resourceTable = [...]Key{
	{Name: priorityKey, Meaning: "the component's rank, of its own; 1 is first", Whole: true, Least: 1},
	{Name: instancesKey, Meaning: "how many instances run", Whole: true},
	{
		Name: memoryKey, Default: strconv.Itoa(appdef.DefaultMemoryMB), Meaning: "memory of an instance, MB; max: as much as the launcher grants",
		Whole: true, Max: true, Least: 1,
	},
	{
		Name: vcoresKey, Default: "1", Meaning: "cores of an instance; max: as many as the launcher grants",
		Whole: true,
		Max:   true, Least: 1,
	},
	{Name: labelKey, Meaning: "the label of the nodes to run on, for the launcher"},
	{Name: placementKey, Default: "0", Meaning: "where instances may be placed, as Slider's bits: 1 strict, 2 " +
		"anywhere, 4 apart", Whole: true},
	{Name: thresholdKey, Default: "5", Meaning: "failures within the window that end the app when there are more; 0 " +
		"or less: no limit", Whole: true, Signed: true},
	{Name: windowKey + "days", Meaning: "the window of failures, days; with hours and minutes it is " +
		"muster.restart.window, and one for the whole app", Whole: true},
	{Name: windowKey + "hours", Meaning: "the window of failures, hours", Whole: true},
	{Name: windowKey + "minutes", Meaning: "the window of failures, minutes", Whole: true},
	{Name: includeKey, Meaning: "globs of the log files that are gathered"},
	{Name: excludeKey, Meaning: "globs of the log files that are not gathered"},
	{
		Name: "yarn.placement.escalate.seconds", Default: "30",
		Meaning: "kept, not acted upon: placing is the launcher's",
	},
	{Name: "yarn.node.failure.threshold", Default: "3", Meaning: "kept, not acted upon"},
	{Name: "yarn.resource.normalization.enabled", Default: "true", Meaning: "kept, not acted upon"},
	{Name: "yarn.disks.count-per-instance", Meaning: "kept, not acted upon"},
	{Name: "yarn.disk.size", Meaning: "kept, not acted upon"},
	{Name: "yarn.resource-profile-name", Meaning: "kept, not acted upon"},
	{Name: "yarn.container.health.threshold.percent", Meaning: "kept, not acted upon"},
	{Name: "yarn.container.health.threshold.poll.frequency.secs", Meaning: "kept, not acted upon"},
	{Name: "yarn.container.health.threshold.window.secs", Meaning: "kept, not acted upon"},
	{Name: "yarn.container.health.threshold.init.delay.secs", Meaning: "kept, not acted upon"},
	{Name: "yarn.resourcemanager.am.retry-count-window-ms", Meaning: "kept, not acted upon"},
	{Name: uniqueKey, Default: "false", Meaning: "kept, not acted upon: each instance has an index"},
}

var configTable = [...]Key{
	{Name: "java_home", Meaning: "the Java of the app: ${JAVA_HOME}, and java_home of a script"},
	{Name: addonsKey, Meaning: "the add-on packages, keys " + addonPrefix + "NAME with commas between them"},
	{Name: addonPrefix + "*", Meaning: "where the add-on NAME is: a folder or zip in the package"},
	{Name: resourcesKey, Meaning: "files for each instance's app/resources, with commas between them"},
	{Name: "application.def", Meaning: "kept, not acted upon: APP on the command line says it"},
	{Name: "system_configs", Meaning: "dictionaries besides global and those of configFiles, with commas between them"},
	{Name: "site.*", Meaning: "a value of the configuration: site.DICTIONARY.KEY"},
}

const (
	uniqueKey    = "component.unique.names"
	addonsKey    = "application.addons"
	addonPrefix  = "application.addon."
	resourcesKey = "application.resources"
)

// resourceNames are the keys that a slip of the keyboard may have meant.
func resourceNames() []string {
	names := []string{gpuKey}
	for _, k := range resourceTable {
		names = append(names, k.Name)
	}
	return names
}
