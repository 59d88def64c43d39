package appdef

import "slices"

// PlaceholderRow is a name that may stand between `${` and `}`. The manual prints the table; a test compares it with
// the resolver.
type PlaceholderRow struct {
	Name    string // COMPONENT, DICTIONARY and KEY stand for any
	Lower   bool   // NAME.lc is the same in lower case
	Meaning string
	Client  bool // one of ClientNames
}

// PlaceholderTable lists all placeholders in the order of the manual.
func PlaceholderTable() []PlaceholderRow { return slices.Clone(placeholderTable[:]) }

var placeholderTable = [...]PlaceholderRow{
	{"COMPONENT.ALLOCATED_PORT", false, "a port for the component of exactly that name, reserved until its process " +
		"opens it; {DEFAULT_n} and {PER_CONTAINER} may follow", false},
	{"@//site/DICTIONARY/KEY", false, "the value of site.DICTIONARY.KEY, with its own placeholders filled in; also " +
		"written {$conf:@//site/DICTIONARY/KEY}", false},
	{"site.DICTIONARY.KEY", false, "the same value, in the form that exports use", false},
	{"COMPONENT_HOST", false, "the hosts of the component's instances in the order of their indexes, with commas " +
		"between them; in an export of the component itself: the instance's own host. The component's name is " +
		"written as it is or in upper case", false},
	{"THIS_HOST", false, "the instance's own host; only in exports", false},
	{"AGENT_WORK_ROOT", false, "the instance's folder", false},
	{"AGENT_LOG_ROOT", false, "the instance's log folder", false},
	{"CONTAINER_ID", false, "the launcher's name for the container, or the instance's name without a launcher", false},
	{"COMPONENT_NAME", true, "the component's name", false},
	{"APP_COMPONENT_NAME", true, "as COMPONENT_NAME", false},
	{prefixName, true, "the component's " + prefixKey + " of appConfig; as a rule empty", false},
	{"COMPONENT_ID", false, "the instance's number in its component: its index plus 1", false},
	{"CLUSTER_NAME", true, "the app id", false},
	{"CLUSTER", false, "as CLUSTER_NAME", false},
	{"APP_NAME", true, "as CLUSTER_NAME", false},
	{"USER", false, "the user who runs the app", false},
	{"USER_NAME", false, "as USER", false},
	{"JAVA_HOME", false, "the app's Java: java_home of appConfig", true},
	{"NN_URI", false, "the default file system: site.fs.defaultFS of appConfig", true},
	{"NN_HOST", false, "the host of NN_URI", true},
	{"ZK_HOST", false, "the ZooKeeper servers: zookeeper.hosts of appConfig", true},
	{"DEFAULT_ZK_PATH", false, "the app's path in ZooKeeper: zookeeper.path of appConfig", true},
	{"DEFAULT_DATA_DIR", false, "the app's folder in the default file system", true},
}

// InjectedKey is a key of the dictionary global that has a value although no file sets it.
type InjectedKey struct {
	Key    string
	Value  string // with placeholders
	Else   string // another value, and where it holds
	Yields bool   // a value in the definition wins
}

// InjectedTable lists them with their values, sorted.
func InjectedTable() []InjectedKey {
	var table []InjectedKey
	for _, key := range injectedKeys() {
		value, _ := Resolver{}.injected(key)
		if key == "app_container_tag" {
			value = "${COMPONENT_ID}" // a number in a real run
		}
		row := InjectedKey{Key: key, Value: value, Yields: yields(key)}
		if key == "security_enabled" {
			row.Else = "true where the host's Hadoop asks for Kerberos tickets"
		}
		table = append(table, row)
	}
	return table
}
