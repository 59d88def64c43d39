package plan

import (
	"maps"
	"path"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
)

const (
	roleChief     = string(appdef.RoleChief)
	roleWorker    = string(appdef.RoleWorker)
	rolePS        = string(appdef.RolePS)
	roleEvaluator = string(appdef.RoleEvaluator)
	roleService   = string(appdef.RoleService)
)

// Request says whose plan is wanted and what is known of its surroundings.
type Request struct {
	AppID     string // the app's name in the registry; empty: unknown
	Run       string
	Digest    string // appdef.Digest of the App; empty: computed, which costs more than the rest of Build
	Component string
	Index     int
	// Instances are the counts in force where they differ from the definition's.
	Instances  map[string]int
	Allocation Allocation
	Engine     EngineChoice
	HostFacts
	// DefaultFS is the URI of the default filesystem, the value of ${NN_URI} where nobody gives another; empty: none.
	DefaultFS string
	// Domain is where Consul answers DNS; empty: registry.DefaultDomain. NoDNS: nothing does, so that members are
	// written by their hosts' addresses whatever muster.address says.
	Domain string
	NoDNS  bool
	// Starts: the plan is to be run here, so that what cannot be run is a problem. Else it is a warning.
	Starts bool
	// Origins say where a part of Allocation came from: `host` → NM_HOST.
	Origins map[string]string
}

// HostFacts are what was found for the process on this host, and in its image.
type HostFacts struct {
	// Inherited is what the process gets of the agent's environment, already filtered. It is not
	// printed with the plan: it belongs to the host.
	Inherited map[string]string
	// Given is what the command line says (--env): it is laid over what an image says.
	Given map[string]string
	Shell string      // runs command texts with -c; empty: bash
	Image *ImageFacts // once it is pulled
	User  *UserFacts  // once it is looked up
	// GPUEnv is what the process is told of the devices that it got; nil: Allocation.Devices by their names.
	GPUEnv map[string]string
	// LibraryDirs hold the devices' libraries, where the root's own loader may not look.
	LibraryDirs []string
	Hadoop      *HadoopFacts // nil: there is none
}

// EngineChoice is the engine that the host permits, chosen by the caller.
type EngineChoice struct {
	Name string // container, cgroup, process
	Why  string
	// Cannot names what this engine does not hold here and why, by the limit's name in Limits'
	// JSON: memory_mb, high_mb, swap_mb, vcores, cpu_hard, pids, shm_mb, gpus, gpu_memory_mb, ulimits.
	Cannot map[string]string
}

// instance is COMPONENT-INDEX.
func (r Request) instance() string {
	return registry.Instance{Component: r.Component, Index: r.Index}.String()
}

// root is the instance's folder: its working directory and AGENT_WORK_ROOT.
func (r Request) root() string { return path.Join(Work, r.instance()) }

// log is the instance's log folder.
func (r Request) log() string { return path.Join(logDir, r.instance()) }

// appID prints an unknown app id as a dash.
func (r Request) appID() string {
	if r.AppID == "" {
		return "-"
	}
	return r.AppID
}

// scope resolves the instance's texts. Claimed ports and the other members are not known yet: the
// former become tokens, the latter's placeholders stay.
func (r Request) scope(app *appdef.App, ports map[string]string) appdef.Resolver {
	id := r.Allocation.ContainerID
	if id == "" {
		id = r.instance()
	}
	vars := maps.Clone(r.Allocation.Vars)
	if vars == nil {
		vars = map[string]string{}
	}
	maps.Copy(vars, app.Vars) // the command line's word is the last
	return r.withDefaultFS(appdef.Resolver{
		App: app, Component: r.Component, User: r.Allocation.User, Cluster: r.appID(), ContainerID: id,
		Tag: r.Index + 1, WorkRoot: r.root(), LogRoot: r.log(), Vars: vars, Site: ports,
	})
}

// HadoopFacts are what there is of Hadoop on a host, found by the caller; empty where there is none of it.
type HadoopFacts struct {
	Conf     string // folder of its configuration
	Home     string // HADOOP_HOME
	HDFSHome string // HADOOP_HDFS_HOME, where it is another
	Java     string // JAVA_HOME
	JVM      string // folder of libjvm.so
	Native   string // folder of libhadoop.so and libhdfs.so
	// Classes are the folders of jars, Jars the jars in them, both in their order.
	Classes, Jars []string
	// Libhdfs: there is a libhdfs.so, and the JVM and the jars that it needs.
	Libhdfs bool
	// Krb5 is Kerberos' own configuration, where it is not in its usual place.
	Krb5 string
	// Tickets: the agent has a ticket of Kerberos', of which each process gets a copy.
	Tickets bool
}

// ImageFacts are what only the pulled image knows (OCI image-spec, config.md).
type ImageFacts struct {
	Digest          string
	Entrypoint, Cmd []string
	Env             []string // NAME=value
	WorkDir         string
	User            string // name or uid, with :group or without
	Bash            bool   // it has one
}

// UserFacts are the ids and the home of whom the process runs as, read where its root keeps them.
type UserFacts struct {
	Name, Home string
	UID, GID   int
	Groups     []int
}

// withDefaultFS gives a Hadoop client's two names of the default filesystem their values where nobody else does.
func (r Request) withDefaultFS(scope appdef.Resolver) appdef.Resolver {
	uri, known := scope.Lookup("NN_URI")
	if !known && r.DefaultFS != "" {
		uri, scope.Vars["NN_URI"] = r.DefaultFS, r.DefaultFS
	}
	if _, known := scope.Lookup("NN_HOST"); known {
		return scope
	}
	if rest, ok := strings.CutPrefix(uri[len(schemeForm.FindString(uri)):], "//"); ok {
		host, _, _ := strings.Cut(rest, "/")
		if host, _, _ = strings.Cut(host, ":"); host != "" {
			scope.Vars["NN_HOST"] = host
		}
	}
	return scope
}
