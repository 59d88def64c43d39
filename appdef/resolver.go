package appdef

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Resolver holds what is known when a text of an App is resolved. It looks up every placeholder of Slider (and its
// `.lc` variant). A field that is not known yet is empty: then the placeholder stays as written and is reported by
// name.
type Resolver struct {
	App       *App
	Component string // whose configuration it is; empty: the app's global one

	User        string // who submitted the app
	Cluster     string // the app instance's name: CLUSTER_NAME, APP_NAME
	ContainerID string
	Tag         int    // serial of the instance in its component, from 1; 0: unknown
	Host        string // this instance's address
	WorkRoot    string // AGENT_WORK_ROOT
	LogRoot     string // AGENT_LOG_ROOT

	// Vars are names that only a client knows (ClientNames) and any others given with --set NAME=v. Those of the
	// command line, which App.Vars has too, win over the definition; the others yield to it.
	Vars map[string]string
	// Hosts has the hosts of each component's instances, in index order; nil until the roster is known.
	Hosts map[string][]string
	// Site has final values by `<dict>.<key>`, such as claimed ports; they win over the configuration.
	Site map[string]string
	// Export is set for the template of an export: there `${C_HOST}` of the component itself is only this instance's
	// host.
	Export bool
	// Secure: the Hadoop cluster asks for Kerberos tickets.
	Secure bool
}

// ClientNames are the placeholders whose values only a Hadoop client knows. One without a value is empty in a
// configuration; it is an error only in a command.
func ClientNames() []string {
	return []string{"DEFAULT_DATA_DIR", "DEFAULT_ZK_PATH", "JAVA_HOME", "NN_HOST", "NN_URI", "ZK_HOST"}
}

// prefixName is the placeholder of a component's prefix, which prefixKey of appConfig sets.
const prefixName, prefixKey = "COMPONENT_PREFIX", "role.prefix"

// clientKeys are the keys of the global appConfig that give a client's name its value.
var clientKeys = [...][2]string{
	{"JAVA_HOME", "java_home"},
	{"ZK_HOST", "zookeeper.hosts"},
	{"DEFAULT_ZK_PATH", "zookeeper.path"},
	{"NN_URI", "site.fs.defaultFS"},
}

// Expand fills text from what is known.
func (r Resolver) Expand(text string) (out string, unresolved []string) {
	return Expand(text, r.Lookup)
}

// ExpandLax is Expand where a client's name without a value is empty; empty lists those names.
func (r Resolver) ExpandLax(text string) (out string, unresolved, empty []string) {
	out, unresolved = Expand(text, func(name string) (string, bool) {
		value, ok := r.Lookup(name)
		if !ok && slices.Contains(ClientNames(), name) {
			if !slices.Contains(empty, name) {
				empty = append(empty, name)
			}
			return "", true
		}
		return value, ok
	})
	slices.Sort(empty)
	return out, unresolved, empty
}

// Lookup finds one placeholder's value; the names are those of Expand.
func (r Resolver) Lookup(name string) (string, bool) {
	if dict, key, ok := siteKey(name); ok {
		if r.App != nil {
			dict, key, _ = siteKeyIn(name, r.App.Defaults)
		}
		return r.site(dict, key)
	}
	if value, ok := r.fixed(name); ok && (value != "" || name == prefixName) { // no prefix is a value
		return value, true
	}
	if base, ok := strings.CutSuffix(name, ".lc"); ok && lowered(base) {
		value, ok := r.Lookup(base)
		return strings.ToLower(value), ok
	}
	if component, ok := r.hostOf(name); ok {
		return r.hosts(component)
	}
	if value, ok := r.clientValue(name); ok {
		return value, true
	}
	value, ok := r.Vars[name]
	return value, ok
}

// fixed are the placeholders with a field of their own.
func (r Resolver) fixed(name string) (string, bool) {
	switch name {
	case "USER", "USER_NAME":
		return r.User, true
	case "CLUSTER_NAME", "CLUSTER", "APP_NAME":
		return r.Cluster, true
	case "COMPONENT_NAME", "APP_COMPONENT_NAME":
		return r.Component, true
	case prefixName:
		return r.config()[prefixKey], true
	case "COMPONENT_ID":
		if r.Tag == 0 {
			return "", true
		}
		return strconv.Itoa(r.Tag), true
	case "CONTAINER_ID":
		return r.ContainerID, true
	case "AGENT_WORK_ROOT":
		return r.WorkRoot, true
	case "AGENT_LOG_ROOT":
		return r.LogRoot, true
	case "THIS_HOST":
		return r.Host, true
	}
	return "", false
}

// lowered tells which fixed names have an `.lc` variant.
func lowered(name string) bool {
	switch name {
	case "CLUSTER_NAME", "APP_NAME", "COMPONENT_NAME", "APP_COMPONENT_NAME", prefixName:
		return true
	}
	return false
}

// hostOf finds the component of `C_HOST`, where C is its exact name or that in upper case.
func (r Resolver) hostOf(name string) (string, bool) {
	base, ok := strings.CutSuffix(name, hostSuffix)
	if !ok || r.App == nil {
		return "", false
	}
	if r.App.Component(base) != nil {
		return base, true
	}
	for _, c := range r.App.Components {
		if strings.ToUpper(c.Name) == base {
			return c.Name, true
		}
	}
	return "", false
}

func (r Resolver) hosts(component string) (string, bool) {
	if r.Export && component == r.Component {
		return r.Host, r.Host != ""
	}
	hosts, ok := r.Hosts[component]
	return strings.Join(hosts, ","), ok
}

// clientValue is the definition's value of a client's name, unless the command line gives another. The variable of the
// host's environment comes after it, as under Slider, which knew the definition alone.
func (r Resolver) clientValue(name string) (string, bool) {
	if r.App == nil {
		return "", false
	}
	if _, given := r.App.Vars[name]; given {
		return "", false
	}
	for _, pair := range clientKeys {
		if pair[0] == name {
			value, ok := r.config()[pair[1]]
			if strings.Contains(value, "${"+name+"}") { // "java_home": "${JAVA_HOME}" names no other value
				return "", false
			}
			return value, ok && value != ""
		}
	}
	return "", false
}

// site finds one value of the configuration: a final one, one that Slider's application master
// sets, the definition's, or the package's default for the dictionary.
func (r Resolver) site(dict, key string) (string, bool) {
	if value, ok := r.Site[dict+"."+key]; ok {
		return value, true
	}
	if r.App == nil {
		return "", false
	}
	value, ok := r.config()["site."+dict+"."+key]
	if dict == "global" && (!ok || !yields(key)) {
		if injected, known := r.injected(key); known {
			return injected, injected != ""
		}
	}
	if !ok {
		if value, ok = r.App.Defaults[dict][key]; !ok {
			return "", false
		}
	}
	if hasPort(value) && !strings.Contains(value, "${"+r.Component+portSuffix+"}") {
		return zeroed(value), true // another component's port
	}
	return value, true
}

func (r Resolver) config() map[string]string {
	if c := r.App.Component(r.Component); c != nil {
		return c.Config
	}
	return r.App.Config
}

// injected are the values that Slider's application master puts into the dictionary global
// (AgentProviderService.addDefaultGlobalConfig, SliderAppMaster).
func (r Resolver) injected(key string) (string, bool) {
	switch key {
	case "app_root", "app_install_dir":
		return "${AGENT_WORK_ROOT}/app/install", true
	case "app_log_dir":
		return "${AGENT_LOG_ROOT}", true
	case "app_pid_dir":
		return "${AGENT_WORK_ROOT}/app/run", true
	case "pid_file":
		return "${AGENT_WORK_ROOT}/app/run/component.pid", true
	case "app_conf_dir":
		return "${AGENT_WORK_ROOT}/app/conf", true
	case "app_input_conf_dir":
		return "${AGENT_WORK_ROOT}/propagatedconf", true
	case "app_container_id":
		return "${CONTAINER_ID}", true
	case "app_container_tag":
		return r.fixed("COMPONENT_ID")
	case "security_enabled":
		return strconv.FormatBool(r.Secure), true
	}
	return "", false
}

// injectedKeys are the keys of the dictionary global that have a value although no file sets them.
func injectedKeys() []string {
	return []string{
		"app_conf_dir", "app_container_id", "app_container_tag", "app_input_conf_dir", "app_install_dir",
		"app_log_dir", "app_pid_dir", "app_root", "pid_file", "security_enabled",
	}
}

// yields tells whether the definition's own value of an injected key wins.
func yields(key string) bool {
	return key == "app_root" || key == "pid_file" || key == "security_enabled"
}

// Dictionaries resolves the component's whole configuration, as a script or command receives it: dictionary → key →
// value. A dictionary that is declared and has no value is empty, and there. A client's name without a value is empty.
// unresolved has, by `<dict>.<key>`, the names that stayed as written.
func (r Resolver) Dictionaries() (dicts map[string]map[string]string, unresolved map[string][]string) {
	dicts, unresolved = map[string]map[string]string{"global": {}}, map[string][]string{}
	if r.App == nil {
		return dicts, unresolved
	}
	known := r.App.Declared(r.Component)
	for dict := range known {
		dicts[dict] = map[string]string{}
	}
	for dict := range r.App.Defaults {
		known[dict] = true
	}
	for _, name := range r.siteNames() {
		dict, key, _ := siteKeyIn(name, known)
		raw, ok := r.site(dict, key)
		if !ok {
			unresolved[dict+"."+key] = []string{sitePath + dict + "/" + key}
			continue
		}
		value, missing, _ := r.ExpandLax(raw)
		if len(missing) > 0 {
			unresolved[dict+"."+key] = missing
		}
		if dicts[dict] == nil {
			dicts[dict] = map[string]string{}
		}
		dicts[dict][key] = value
	}
	return dicts, unresolved
}

// siteNames lists all `site.<dict>.<key>` that have a value for the component, sorted.
func (r Resolver) siteNames() []string {
	names := map[string]bool{}
	for key := range r.config() {
		if dict, rest, ok := siteKey(key); ok && dict != "" && rest != "" {
			names["site."+dict+"."+rest] = true
		}
	}
	for dict, values := range r.App.Defaults {
		for key := range values {
			names["site."+dict+"."+key] = true
		}
	}
	for key := range r.Site {
		names["site."+key] = true
	}
	for _, key := range injectedKeys() {
		names["site.global."+key] = true
	}
	return slices.Sorted(maps.Keys(names))
}
