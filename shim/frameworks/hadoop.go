package frameworks

import (
	"cmp"
	"slices"
	"strings"

	"github.com/muster-agent/muster/shim/plan"
)

// hadoop adds to a process's variables what libhdfs and Hadoop's own programs look for, whatever framework it has. What
// the definition says by name, a framework has said and an image brings stands; search paths go on with Hadoop's behind
// it.
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
	say("KRB5_CONFIG", h.Krb5)
	if h.Krb5 != "" { // Java does not heed KRB5_CONFIG
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

// told is what a process is told already: by its definition, by its framework, or by its image. What comes from the
// agent's own environment is where the facts were found.
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

// searchPath is a search path with more behind it, each once; empty: it stays as it is, for it is filled in later.
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
