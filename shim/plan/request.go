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

// Request names the instance to plan and what is known about its surroundings.
type Request struct {
	AppID     string // the app's name in the registry; empty: unknown
	Run       string
	Digest    string // appdef.DigestIn for registry.Spoken().Min; empty: computed here, at more cost than the rest
	Component string
	Index     int
	// Instances are the current counts that differ from the definition's.
	Instances  map[string]int
	Allocation Allocation
	Engine     EngineChoice
	HostFacts
	// DefaultFS is the URI of the default filesystem, for ${NN_URI} if nothing else sets it; empty: none.
	DefaultFS string
	// Domain is the domain of Consul's DNS; empty: registry.DefaultDomain. NoDNS: there is no DNS, so members use their
	// hosts' addresses whatever muster.address says.
	Domain string
	NoDNS  bool
	// Starts: the plan will run here, so a part that cannot run is a problem. Else it is a warning.
	Starts bool
	// Origins are the sources of parts of Allocation: `host` → NM_HOST.
	Origins map[string]string
}

// HostFacts are what was found on this host, and in the image of the process.
type HostFacts struct {
	// Inherited are the variables of the agent's environment that the process gets, already filtered. They belong to
	// the host and are not printed with the plan.
	Inherited map[string]string
	// Given are variables of the command line (--env): they win over those of an image.
	Given map[string]string
	Shell string // runs command texts with -c; empty: bash
	// HostRoot says that the agent has the rights of this host's root.
	HostRoot bool
	MemoryMB int         // that the host has; 0: unknown
	Image    *ImageFacts // once it is pulled
	User     *UserFacts  // once it is looked up
	// GPUEnv are the variables for the granted devices; nil: Allocation.Devices by their names.
	GPUEnv map[string]string
	// LibraryDirs hold the devices' libraries, in folders that the loader of the root may not search.
	LibraryDirs []string
	Hadoop      *HadoopFacts // nil: there is none
}

// EngineChoice is the engine that the host permits, chosen by the caller.
type EngineChoice struct {
	Name string // container, cgroup, process
	Why  string
	// Cannot names the limits that this engine cannot enforce here and why, by their names in Limits' JSON: memory_mb,
	// high_mb, swap_mb, vcores, cpu_hard, pids, shm_mb, gpus, gpu_memory_mb, ulimits.
	Cannot map[string]string
	// IDs says whose user and group ids the process has on the host: IDsSubordinate, or "" for the agent's own.
	IDs string
	// Filter says which filter of system calls the policy of this host has: default, none, a path.
	Filter string
}

// IDsSubordinate says that a process has subordinate ids in a user namespace: its root is nobody on the host.
const IDsSubordinate = "subordinate"

// instance is COMPONENT-INDEX.
func (r Request) instance() string {
	return registry.Instance{Component: r.Component, Index: r.Index}.String()
}

// root is the instance's folder: its working directory and AGENT_WORK_ROOT.
func (r Request) root() string { return path.Join(Work, r.instance()) }

// log is the instance's log folder.
func (r Request) log() string { return path.Join(logDir, r.instance()) }

// appID is the app id, or a dash if it is unknown.
func (r Request) appID() string {
	if r.AppID == "" {
		return "-"
	}
	return r.AppID
}

// scope resolves the instance's texts. Claimed ports and the other members are not known yet: ports become tokens,
// placeholders of members stay.
func (r Request) scope(app *appdef.App, ports map[string]string) appdef.Resolver {
	id := r.Allocation.ContainerID
	if id == "" {
		id = r.instance()
	}
	vars := maps.Clone(r.Allocation.Vars)
	if vars == nil {
		vars = map[string]string{}
	}
	maps.Copy(vars, app.Vars) // the command line wins
	if r.Hadoop != nil && r.Hadoop.Java != "" && r.Image == nil {
		vars = r.withJava(app, vars)
	}
	return r.withDefaultFS(appdef.Resolver{
		App: app, Component: r.Component, User: r.Allocation.User, Cluster: r.appID(), ContainerID: id,
		Tag: r.Index + 1, WorkRoot: r.root(), LogRoot: r.log(), Vars: vars, Site: ports,
		Secure: r.Hadoop != nil && r.Hadoop.Tickets,
	})
}

// withJava gives ${JAVA_HOME} the Java of the host's Hadoop, if nothing else sets it: as Slider, whose application
// master named its own.
func (r Request) withJava(app *appdef.App, vars map[string]string) map[string]string {
	const name = "JAVA_HOME"
	if _, known := (appdef.Resolver{App: app, Component: r.Component, Vars: vars}).Lookup(name); !known {
		vars[name] = r.Hadoop.Java
	}
	return vars
}

// HadoopFacts describe the Hadoop of a host, found by the caller; fields are empty if there is none.
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
	// Krb5 is Kerberos' own configuration file, if it is not in its usual folder.
	Krb5 string
	// Tickets: the agent has a Kerberos ticket, and each process gets a copy of it. Tokens: it has a token file, too.
	Tickets, Tokens bool
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

// UserFacts are the ids and the home folder of the process's user, from the files of its root.
type UserFacts struct {
	Name, Home string
	UID, GID   int
	Groups     []int
	// Commands tells whether another user of the host is one of the user namespace that this one is root of; nil: none.
	Commands func(uid int) bool `json:"-"`
}

// withDefaultFS sets a Hadoop client's two names of the default filesystem, if nothing else sets them.
func (r Request) withDefaultFS(scope appdef.Resolver) appdef.Resolver {
	uri, known := scope.Lookup("NN_URI")
	if !known && r.DefaultFS != "" {
		uri, scope.Vars["NN_URI"] = r.DefaultFS, r.DefaultFS
	}
	_, given := scope.App.Vars["NN_HOST"]
	// a host from the environment is that of its own filesystem, not of the one that the definition names
	if _, known := scope.Lookup("NN_HOST"); known && (given || uri == scope.Vars["NN_URI"]) {
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
