package frameworks

import (
	"cmp"
	"maps"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// hbox adds the variables that HBox's container sets itself, besides those of its framework. A variable that the
// definition sets wins.
func hbox(p plan.Plan, r registry.Roster) (env, files map[string]string) {
	env, files = none()
	role, index := hboxPlace(p, r)
	maps.Copy(env, map[string]string{
		"INDEX": index, "TF_ROLE": role, "TF_INDEX": index,
		"PYTHONUNBUFFERED":       "1",
		"HBOX_CONTAINER_LOG_DIR": p.Process.Env["MUSTER_LOG_DIR"],
		"HBOX_APP_TYPE":          p.HBox.Type,
		"HBOX_CONTAIENR_GPU_NUM": strconv.Itoa(p.HBox.GPUs), // HBox's own spelling
		"INPUT_PATH":             p.HBox.Input,
		"HBOX_OUTPUT_INDEX":      p.HBox.Output,
		"APP_ID":                 p.App.ID,
		"GPU_NUM":                strconv.Itoa(p.Limits.GPUs),
		"LD_LIBRARY_PATH":        hboxHere(p.Process.Inherited["LD_LIBRARY_PATH"]),
		"CLASSPATH":              hboxClasses(p),
	})
	if p.HBox.Top != "" {
		env[plan.DefaultFSVariable] = p.HBox.Top
	}
	dir := p.Process.Inherited["HADOOP_CONF_DIR"]
	if h := p.Hadoop; h != nil && (dir == "" || p.Root.Kind != plan.RootImage) {
		dir = h.Conf
	}
	if dir != "" {
		env["HADOOP_CONF_DIR"] = hboxHere(dir)
	}
	if user := cmp.Or(p.Process.Inherited["HADOOP_USER_NAME"], hadoopUser(p), p.Allocation.User); user != "" {
		env["HADOOP_USER_NAME"] = user
	}
	maps.Copy(env, hboxOfType(p, r, role, index))
	maps.DeleteFunc(env, func(name, _ string) bool { _, own := p.Process.Env[name]; return own })
	return env, files
}

// hadoopUser is the user towards Hadoop, if the host has a Hadoop.
func hadoopUser(p plan.Plan) string {
	if p.Hadoop == nil {
		return ""
	}
	return p.Hadoop.User
}

// hboxJars is the working directory's jars to Java.
const hboxJars = "./*"

// hboxClasses is the class path without what Hadoop adds.
func hboxClasses(p plan.Plan) string {
	inherited := p.Process.Inherited["CLASSPATH"]
	if p.HBox.JarsLast {
		return hboxHere(inherited)
	}
	return hboxHere(strings.TrimSuffix(hboxJars+":"+inherited, ":"))
}

// hboxJarsLast has the class path end with the user's jars, where the job says so.
func hboxJarsLast(p plan.Plan, env map[string]string) {
	if _, own := p.Process.Env["CLASSPATH"]; p.HBox != nil && p.HBox.JarsLast && !own {
		env["CLASSPATH"] += ":" + hboxJars
	}
}

// hboxHere puts the working directory before a search path.
func hboxHere(path string) string { return strings.TrimSuffix("./:"+path, ":") }

// hboxPlace is the role and index of the instance as HBox counts: chiefs are the first workers, and each role counts
// from 0. Without a roster it comes from the plan.
func hboxPlace(p plan.Plan, r registry.Roster) (role, index string) {
	at := p.Who.Index
	switch p.Who.Role {
	case "chief", "worker":
		role = "worker"
		if i := placeOf(trainers(r), p); i >= 0 {
			at = i
		}
	case "ps":
		role = "ps"
		if p.Who.Component == hboxScheduler {
			role = hboxScheduler
		}
	default:
		role = p.Who.Role
	}
	return role, strconv.Itoa(at)
}

// hboxScheduler is the name of the component that runs XDL's scheduler.
const hboxScheduler = "scheduler"

// hboxOfType are the variables of one app type.
func hboxOfType(p plan.Plan, r registry.Roster, role, index string) map[string]string {
	workers, ps := strconv.Itoa(len(trainers(r))), strconv.Itoa(len(servers(r)))
	switch p.HBox.Type {
	case "TENSORFLOW", "TENSOR2TENSOR":
		if p.HBox.Single {
			// as a text, as Java prints it
			return map[string]string{"TN_ROLE": role, "TN_INDEX": index, "TN_CLUSTER_DEF": "null"}
		}
	case "DISTLIGHTGBM":
		return map[string]string{"LIGHTGBM_NUM_WORKER": workers}
	case "DISTLIGHTLDA":
		return map[string]string{"LIGHTLDA_NUM_WORKER": workers, "LIGHTLDA_NUM_PS": ps}
	case "MPI", "TENSORNET", "HOROVOD":
		return tell(hboxMPI(index), hboxMPIPaths(p))
	case "VPC", "DIGITS":
		return pythonPath(p)
	}
	return nil
}

// hboxMPI are the variables of HBox's MPI types. Their index counts from 1, and the first line of the file that they
// name is the exit code of the process.
func hboxMPI(index string) map[string]string {
	n, err := strconv.Atoi(index)
	if err != nil {
		return nil // hboxPlace has made the text
	}
	return map[string]string{"TF_INDEX": strconv.Itoa(n + 1), "HBOX_CUSTOM_EXIT": "exit.code"}
}

// hboxMPIPaths are the folders of the Open MPI that the submission names.
func hboxMPIPaths(p plan.Plan) map[string]string {
	paths := mpiPaths(p)
	if libraries, ok := paths["LD_LIBRARY_PATH"]; ok {
		paths["LD_LIBRARY_PATH"] = hboxHere(libraries)
	}
	return paths
}

func pythonPath(p plan.Plan) map[string]string {
	return map[string]string{"PYTHONPATH": hboxHere(p.Process.Inherited["PYTHONPATH"])}
}
