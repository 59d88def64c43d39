package hbox

import (
	"strconv"

	"github.com/muster-agent/muster/appdef"
)

// The components, by HBox's roles. A chief is worker 0 with a memory of its own; its process sees itself as a worker.
const (
	roleScheduler = "scheduler" // XDL's
	rolePS        = "ps"
	roleChief     = "chiefworker"
	roleWorker    = "worker"
	roleEvaluator = "evaluator"
)

// role is one component in the making.
type role struct {
	name   string
	count  int
	memory int // MB
	cores  int
	gpus   int
	at     appdef.Place // of the count
}

// worker tells whether the role is a part of HBox's workers.
func (r role) worker() bool { return r.name == roleWorker || r.name == roleChief }

// readRoles does HBox's arithmetic: which roles there are, and whether their processes know of each other.
func (j *job) readRoles() {
	l := j.line
	v, _ := l.value("worker-num")
	workers := role{
		name: roleWorker, count: l.whole("worker-num", 1, 1), memory: l.memory("worker-memory", 1024),
		cores: l.whole("worker-cores", 1, 1),
		gpus:  l.whole("worker-gpus", 0, 0), at: v.Place,
	}
	v, _ = l.value("ps-num")
	servers := role{
		name: rolePS, count: l.whole("ps-num", 0, 0), memory: l.memory("ps-memory", 1024),
		cores: l.whole("ps-cores", 1, 1),
		gpus:  l.whole("ps-gpus", 0, 0), at: v.Place,
	}
	if !j.kind.ps {
		if servers.count > 0 {
			l.warn(servers.at, strconv.Itoa(servers.count)+" with the app type "+j.kind.name, "no value",
				"it has no parameter servers: there are none")
		}
		servers.count = 0
	}
	j.workers = workers.count
	j.single = j.kind.alone(workers.count, servers.count, l.confTruth(confStrategy, true))
	if j.kind.name == "XDL" && servers.count > 0 {
		j.roles = append(j.roles, role{
			name: roleScheduler, count: 1, memory: servers.memory, cores: servers.cores,
			gpus: servers.gpus, at: servers.at,
		})
	}
	if servers.count > 0 {
		j.roles = append(j.roles, servers)
	}
	j.divide(workers)
}

// divide takes a chief and an evaluator from the workers if they are asked for.
func (j *job) divide(workers role) {
	l := j.line
	chief := l.memory("chiefworker-memory", workers.memory)
	last := l.memory("evaluatorworker-memory", workers.memory)
	evaluator := j.evaluated(workers)
	if !j.kind.tensorflow() {
		chief, last = j.without("chiefworker-memory", workers.memory), j.without("evaluatorworker-memory",
			workers.memory)
	}
	one := func(name string, memory int) role {
		return role{name: name, count: 1, memory: memory, cores: workers.cores, gpus: workers.gpus, at: workers.at}
	}
	if evaluator {
		workers.count--
	}
	switch {
	case workers.count == 1:
		workers.memory = chief // worker 0 is the only worker
	case chief != workers.memory:
		workers.count--
		j.roles = append(j.roles, one(roleChief, chief))
	}
	j.roles = append(j.roles, workers)
	if evaluator {
		j.roles = append(j.roles, one(roleEvaluator, last))
	}
}

// evaluated tells whether the last worker is an evaluator.
func (j *job) evaluated(workers role) bool {
	v, ok := j.line.value("tf-evaluator")
	if !ok || !j.line.truth("tf-evaluator", false) {
		return false
	}
	want := ""
	switch {
	case !j.kind.tensorflow():
		want = "the app type TENSORFLOW or TENSOR2TENSOR"
	case j.single:
		want = "a distributed job"
	case workers.count == 1:
		want = "a second worker"
	default:
		return true
	}
	j.line.warn(v.Place, appdef.Quote(v.Text), want, "there is no evaluator")
	return false
}

// without warns about an option of TensorFlow's that has no effect with another type.
func (j *job) without(name string, fallback int) int {
	if v, ok := j.line.value(name); ok {
		j.line.warn(v.Place, appdef.Quote(v.Text)+" with the app type "+j.kind.name,
			"the app type TENSORFLOW or TENSOR2TENSOR", "it has no effect")
	}
	return fallback
}
