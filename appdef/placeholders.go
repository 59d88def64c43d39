package appdef

import "slices"

// Placeholder is what may stand between `${` and `}`. The table is what the manual prints; a test holds it to the
// resolver, from both sides.
type Placeholder struct {
	Name    string // COMPONENT, DICTIONARY and KEY stand for any
	Lower   bool   // NAME.lc is the same in lower case
	Meaning string
	Client  bool // one of ClientNames
}

// PlaceholderTable lists those that a Resolver or a port's text knows, in the order of the manual.
func PlaceholderTable() []Placeholder { return slices.Clone(placeholderTable[:]) }

var placeholderTable = [...]Placeholder{
	{"COMPONENT.ALLOCATED_PORT", false, "a port of its own for the component of just that name, held until its " +
		"process has it; {DEFAULT_n} and {PER_CONTAINER} may follow", false},
	{"@//site/DICTIONARY/KEY", false, "the value of site.DICTIONARY.KEY, itself filled in; also written " +
		"{$conf:@//site/DICTIONARY/KEY}", false},
	{"site.DICTIONARY.KEY", false, "the same, as exports write it", false},
	{"COMPONENT_HOST", false, "the hosts of the component's instances, in the order of their indexes, with commas " +
		"between them; in an export of the component itself the instance's own host. The component's name as it is " +
		"or in upper case", false},
	{"THIS_HOST", false, "the instance's own host; in exports alone", false},
	{"AGENT_WORK_ROOT", false, "the instance's folder", false},
	{"AGENT_LOG_ROOT", false, "the instance's log folder", false},
	{"CONTAINER_ID", false, "the launcher's name for the container, else the instance's", false},
	{"COMPONENT_NAME", true, "the component", false},
	{"APP_COMPONENT_NAME", true, "the same", false},
	{"COMPONENT_PREFIX", true, "the same", false},
	{"COMPONENT_ID", false, "the instance's number in its component, from 1: the index and 1", false},
	{"CLUSTER_NAME", true, "the app id", false},
	{"CLUSTER", false, "the same", false},
	{"APP_NAME", true, "the same", false},
	{"USER", false, "the user who runs the app", false},
	{"USER_NAME", false, "the same", false},
	{"JAVA_HOME", false, "the app's Java: java_home of appConfig", true},
	{"NN_URI", false, "the default file system: site.fs.defaultFS of appConfig", true},
	{"NN_HOST", false, "its host", true},
	{"ZK_HOST", false, "ZooKeeper's servers: zookeeper.hosts of appConfig", true},
	{"DEFAULT_ZK_PATH", false, "the app's path there: zookeeper.path of appConfig", true},
	{"DEFAULT_DATA_DIR", false, "the app's folder in the default file system", true},
}

// InjectedKey is a key of the dictionary global that has a value without being written.
type InjectedKey struct {
	Key    string
	Value  string // with placeholders
	Yields bool   // a value of the definition's own wins
}

// InjectedTable lists them with their values, sorted.
func InjectedTable() []InjectedKey {
	var table []InjectedKey
	for _, key := range injectedKeys() {
		value, _ := Resolver{}.injected(key)
		if key == "app_container_tag" {
			value = "${COMPONENT_ID}" // a number, where there is one
		}
		table = append(table, InjectedKey{Key: key, Value: value, Yields: yields(key)})
	}
	return table
}
