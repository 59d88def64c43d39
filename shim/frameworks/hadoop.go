package frameworks

import (
	"cmp"
	"slices"
	"strings"

	"github.com/muster-agent/muster/shim/plan"
)

// hadoop adds the variables that libhdfs and Hadoop's own programs need, with any framework. It keeps values of the
// definition, of the framework and of the image; Hadoop's folders are appended to search paths.
func hadoop(p plan.Plan, env map[string]string) {
	h := p.Hadoop
	if h == nil {
		return
	}
	say := func(name, value string) {
		if _, said := told(p, env, name); !said && value != "" {
			env[name] = value
		}
	}
	say("HADOOP_CONF_DIR", h.Conf)
	say("HADOOP_HOME", h.Home)
	say("HADOOP_HDFS_HOME", cmp.Or(h.HDFSHome, h.Home))
	say("JAVA_HOME", h.Java)
	say("HADOOP_USER_NAME", h.User)
	say("KRB5CCNAME", h.Tickets)
	say(plan.TokensVariable, h.Tokens)
	say("KRB5_CONFIG", h.Krb5)
	if h.Krb5 != "" { // Java ignores KRB5_CONFIG
		say("LIBHDFS_OPTS", "-Djava.security.krb5.conf="+h.Krb5)
	}
	conf, _ := told(p, env, "HADOOP_CONF_DIR")
	for name, more := range map[string][]string{
		"CLASSPATH": append(strings.Split(conf, ":"), h.Jars...), "LD_LIBRARY_PATH": {h.JVM, h.Native},
	} {
		if path := searchPath(p, env, name, more); path != "" && !slices.Contains(p.Process.Secrets, name) {
			env[name] = path
		}
	}
}

// told is the value that a variable already has from the definition, the framework or the image. The agent's own
// environment does not count: the facts come from there.
func told(p plan.Plan, env map[string]string, name string) (string, bool) {
	if slices.Contains(p.Process.Secrets, name) {
		return "", true
	}
	if value, ok := p.Process.Env[name]; ok {
		return value, true
	}
	if value, ok := env[name]; ok {
		return value, true
	}
	value, ok := p.Process.Inherited[name]
	return value, ok && p.Root.Kind == plan.RootImage
}

// searchPath appends folders to a search path, each once. It is empty if the path stays as it is, because it is filled
// in later.
func searchPath(p plan.Plan, env map[string]string, name string, more []string) string {
	path, said := told(p, env, name)
	if !said {
		path = p.Process.Inherited[name]
	}
	if _, own := p.Process.Env[name]; own && (strings.Contains(path, "{{") || strings.Contains(path, "${")) {
		return ""
	}
	var all []string
	if path != "" {
		all = strings.Split(path, ":")
	}
	for _, one := range more {
		if one != "" && !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return strings.Join(all, ":")
}
