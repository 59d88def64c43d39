package launcher

import (
	"maps"
	"strings"
)

// Inherit picks from environ (`NAME=value`) what the allow-list lets through, then applies extra:
// `NAME` takes a variable of environ over, `NAME=value` sets it. Names beginning with MUSTER_ never
// pass: they are the agent's settings, or what another agent told us.
func Inherit(environ, extra []string) map[string]string { return pick(environ, extra, inherited) }

// InheritIntoImage is Inherit for a process with an image's root: of the allow-list all that names
// files or users of the host stays outside.
func InheritIntoImage(environ, extra []string) map[string]string {
	return pick(environ, extra, func(name string) bool { return inherited(name) && !ofHost(name) })
}

func pick(environ, extra []string, passes func(string) bool) map[string]string {
	all := Environ(environ)
	env := map[string]string{}
	for name, value := range all {
		if passes(name) {
			env[name] = value
		}
	}
	maps.Copy(env, given(all, extra))
	return env
}

// Given are the variables that extra names, as Inherit takes them.
func Given(environ, extra []string) map[string]string { return given(Environ(environ), extra) }

func given(all map[string]string, extra []string) map[string]string {
	env := map[string]string{}
	for _, e := range extra {
		name, value, set := strings.Cut(e, "=")
		if !set {
			value, set = all[name]
		}
		if set && name != "" && !strings.HasPrefix(name, "MUSTER_") {
			env[name] = value
		}
	}
	return env
}

// ofHost tells which variables of the allow-list speak of the host's files and users.
func ofHost(name string) bool {
	switch name {
	case "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "JAVA_HOME",
		"CUDA_HOME", "CUDA_PATH":
		return true
	}
	for _, prefix := range [...]string{"PYTHON", "CONDA_", "HADOOP_", "KRB5"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Environ turns `NAME=value` lines into a map; the last of a repeated name wins, as in getenv of
// most shells, and lines without a name are dropped.
func Environ(environ []string) map[string]string {
	m := make(map[string]string, len(environ))
	for _, e := range environ {
		if name, value, ok := strings.Cut(e, "="); ok && name != "" {
			m[name] = value
		}
	}
	return m
}

// Inherited tells whether Inherit lets a variable through.
func Inherited(name string) bool { return inherited(name) }

// inherited is the allow-list. Programs read the proxy variables in either case.
func inherited(name string) bool {
	switch name {
	case "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "TERM",
		"LD_LIBRARY_PATH", "VIRTUAL_ENV", "JAVA_HOME":
		return true
	}
	for _, prefix := range [...]string{
		"LC_", "PYTHON", "CONDA_", "HADOOP_", "KRB5", "CUDA_", "NVIDIA_", "NCCL_", "GLOO_", "OMP_",
	} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.HasSuffix(strings.ToLower(name), "_proxy") && !strings.HasPrefix(name, "MUSTER_")
}
