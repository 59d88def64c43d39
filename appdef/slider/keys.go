package slider

import (
	"slices"
	"strconv"

	"github.com/muster-agent/muster/appdef"
)

// Key is a key of appConfig or resources that Slider defines. The loader, the schemas and the manual use the tables
// below; muster's own keys are appdef.Keys.
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
	{
		Name: priorityKey, Meaning: "the component's position, different for each component; 1 is first", Whole: true,
		Least: 1,
	},
	{Name: instancesKey, Meaning: "how many instances run", Whole: true},
	{
		Name: memoryKey, Default: strconv.Itoa(appdef.DefaultMemoryMB),
		Meaning: "memory of an instance, MB; max: all that the launcher grants",
		Whole:   true, Max: true, Least: 1,
	},
	{
		Name: vcoresKey, Default: "1", Meaning: "cores of an instance; max: all that the launcher grants",
		Whole: true,
		Max:   true, Least: 1,
	},
	{Name: labelKey, Meaning: "the label of the nodes to run on, for the launcher"},
	{Name: placementKey, Default: "0", Meaning: "where instances may run, as Slider's bits: 1 strict, 2 anywhere, 4 " +
		"each on a host of its own", Whole: true},
	{Name: thresholdKey, Default: "5", Meaning: "how many failures the window allows; one more ends the app. 0 or " +
		"less: no limit", Whole: true, Signed: true},
	{Name: windowKey + "days", Meaning: "the window of failures: days. Days, hours, minutes and seconds add up to " +
		"muster.restart.window of the whole app", Whole: true},
	{Name: windowKey + "hours", Meaning: "the window of failures: hours", Whole: true},
	{Name: windowKey + "minutes", Meaning: "the window of failures: minutes", Whole: true},
	{Name: windowKey + "seconds", Meaning: "the window of failures: seconds", Whole: true},
	{Name: includeKey, Meaning: "regular expressions of the log files that YARN gathers"},
	{Name: excludeKey, Meaning: "regular expressions of the log files that YARN does not gather"},
	{
		Name: "yarn.placement.escalate.seconds", Default: "30",
		Meaning: "ignored: the launcher places instances",
	},
	{Name: "yarn.node.failure.threshold", Default: "3", Meaning: "ignored"},
	{Name: "yarn.resource.normalization.enabled", Default: "true", Meaning: "ignored"},
	{Name: "yarn.disks.count-per-instance", Meaning: "ignored"},
	{Name: "yarn.disk.size", Meaning: "ignored"},
	{Name: "yarn.resource-profile-name", Meaning: "ignored"},
	{Name: "yarn.container.health.threshold.percent", Meaning: "ignored"},
	{Name: "yarn.container.health.threshold.poll.frequency.secs", Meaning: "ignored"},
	{Name: "yarn.container.health.threshold.window.secs", Meaning: "ignored"},
	{Name: "yarn.container.health.threshold.init.delay.secs", Meaning: "ignored"},
	{Name: "yarn.resourcemanager.am.retry-count-window-ms", Meaning: "ignored"},
	{Name: uniqueKey, Default: "false", Meaning: "ignored: each instance has an index"},
}

var configTable = [...]Key{
	{Name: "java_home", Meaning: "the app's Java: the value of ${JAVA_HOME}, and java_home for scripts"},
	{Name: addonsKey, Meaning: "the names of the add-on packages, with commas between them: " + addonPrefix + "NAME"},
	{Name: addonPrefix + "*", Meaning: "the path of the add-on NAME: a folder or zip in the package"},
	{Name: resourcesKey, Meaning: "files of the package or of stores (hdfs:, http:, https:, file:) that each " +
		"instance gets in app/resources, with commas between them"},
	{Name: generationKey, Default: "false", Meaning: "ignored: scripts write their files of configuration"},
	{Name: "application.def", Meaning: "ignored: the command line names the package (APP)"},
	{Name: "system_configs", Meaning: "dictionaries in addition to global and those of configFiles, with commas " +
		"between them"},
	{Name: "role.prefix", Meaning: "the value of ${COMPONENT_PREFIX}, and nothing else"},
	{Name: "site.*", Meaning: "a value of the configuration: site.DICTIONARY.KEY"},
	{Name: envPrefix + "*", Meaning: "a variable of the process and of the scripts, as " + ownEnvPrefix + "NAME"},
}

const (
	uniqueKey    = "component.unique.names"
	addonsKey    = "application.addons"
	addonPrefix  = "application.addon."
	resourcesKey = "application.resources"

	generationKey = "am.config.generation"
)

// resourceNames are the keys that a misspelt key may mean.
func resourceNames() []string {
	names := []string{gpuKey}
	for _, k := range resourceTable {
		names = append(names, k.Name)
	}
	return names
}
