package frameworks

import (
	"encoding/json"
	"maps"
	"strconv"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// tensorflow sets the variables of two kinds of programs.
//
// TF_CONFIG is TensorFlow's own: `{"cluster": {"chief": [..], "worker": [..], "ps": [..]}, "task": {"type": ..,
// "index": ..}}`. It has a chief if the app has one. An evaluator reads the cluster but is not in it (TensorFlow 2.4
// and later would wait for it for ever).
//
// TF_CLUSTER_DEF, TF_ROLE, TF_INDEX, the same three as TN_*, and LOCAL_ADDRESS are HBox's: there is no chief, worker 0
// leads. An HBox submission has its evaluator in TF_CLUSTER_DEF as well. Both count the same members, so a program may
// use either.
//
// A service is outside the cluster and gets none of these. While no member exports an address nobody gets them: a
// single process must not find an empty cluster.
func tensorflow(p plan.Plan, r registry.Roster) (env, files map[string]string) {
	c := plan.ClusterOf(r)
	if p.HBox != nil { // its chief is worker 0, whatever memory that has; programs treat worker 0 as chief themselves
		c.Workers, c.Chiefs = c.Leading(), nil
	}
	task, ok := taskOf(c, p.Who)
	if !ok {
		return none()
	}
	return tensorflowMember(p, r, tfConfig{Cluster: tfCluster(c), Task: task})
}

// tensor2tensor is tensorflow for that library's trainer: chiefs and workers are masters, and the environment is the
// cloud (tensor2tensor/bin/make_tf_configs.py of its sources).
func tensor2tensor(p plan.Plan, r registry.Roster) (env, files map[string]string) {
	c := plan.ClusterOf(r)
	task, ok := taskOf(c, p.Who)
	if !ok {
		return none()
	}
	cluster := map[string][]string{"master": plan.Addresses(c.Leading())}
	if len(c.PS) > 0 {
		cluster["ps"] = plan.Addresses(c.PS)
	}
	if i := placeOf(c.Leading(), p); i >= 0 {
		task = tfTask{Type: "master", Index: i}
	}
	return tensorflowMember(p, r, tfConfig{Cluster: cluster, Task: task, Environment: "cloud"})
}

// tensorflowMember are the variables of a member besides its TF_CONFIG.
func tensorflowMember(p plan.Plan, r registry.Roster, config tfConfig) (env, files map[string]string) {
	env, files = none()
	c := plan.ClusterOf(r) // with its chiefs: they lead the workers of TF_CLUSTER_DEF
	env["TF_CONFIG"] = encode(config)
	def := clusterDef(c)
	if p.HBox != nil && len(c.Evaluators) > 0 {
		def["evaluator"] = plan.Addresses(c.Evaluators)
	}
	env["TF_CLUSTER_DEF"] = encode(def)
	env["TF_ROLE"], env["TF_INDEX"] = hboxRole(c, p.Who, config.Task)
	env["TN_CLUSTER_DEF"], env["TN_ROLE"], env["TN_INDEX"] = env["TF_CLUSTER_DEF"], env["TF_ROLE"], env["TF_INDEX"]
	for _, row := range r.Rows {
		if row.Component == p.Who.Component && row.Index == p.Who.Index {
			env["LOCAL_ADDRESS"] = row.Addr
		}
	}
	maps.Copy(env, pastProxy(p.Process, append(c.Leading(), c.PS...)))
	return env, files
}

// tfConfig is TF_CONFIG's JSON (tf.distribute.cluster_resolver.TFConfigClusterResolver).
type tfConfig struct {
	Cluster map[string][]string `json:"cluster"`
	Task    tfTask              `json:"task"`
	// Environment is Tensor2Tensor's.
	Environment string `json:"environment,omitempty"`
}

type tfTask struct {
	Type  string `json:"type"`
	Index int    `json:"index"`
}

// tfCluster has at most one chief, as TensorFlow demands: further ones lead the workers.
func tfCluster(c plan.Cluster) map[string][]string {
	cluster := map[string][]string{}
	add := func(job string, rows []registry.Row) {
		if len(rows) > 0 {
			cluster[job] = plan.Addresses(rows)
		}
	}
	chief, workers := lead(c)
	add("chief", chief)
	add("worker", workers)
	add("ps", c.PS)
	return cluster
}

func lead(c plan.Cluster) (chief, workers []registry.Row) {
	workers = c.Leading()
	if len(c.Chiefs) == 0 {
		return nil, workers
	}
	return workers[:1], workers[1:]
}

// taskOf finds the instance among the members; false for a service and for one without an address.
func taskOf(c plan.Cluster, who plan.Who) (tfTask, bool) {
	chief, workers := lead(c)
	for _, job := range []struct {
		name string
		rows []registry.Row
	}{{"chief", chief}, {"worker", workers}, {"ps", c.PS}, {"evaluator", c.Evaluators}} {
		if i := plan.Place(job.rows, who.Component, who.Index); i >= 0 {
			return tfTask{Type: job.name, Index: i}, true
		}
	}
	return tfTask{}, false
}

// clusterDef is HBox's cluster: `worker` always, `ps` where there is one, nothing else.
func clusterDef(c plan.Cluster) map[string][]string {
	def := map[string][]string{"worker": plan.Addresses(c.Leading())}
	if len(c.PS) > 0 {
		def["ps"] = plan.Addresses(c.PS)
	}
	return def
}

func hboxRole(c plan.Cluster, who plan.Who, task tfTask) (role, index string) {
	if i := plan.Place(c.Leading(), who.Component, who.Index); i >= 0 {
		return "worker", strconv.Itoa(i)
	}
	return task.Type, strconv.Itoa(task.Index)
}

// encode prints JSON with sorted keys; strings, numbers, lists and maps of them always encode.
func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("frameworks: encode: " + err.Error())
	}
	return string(b)
}
