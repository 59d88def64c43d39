package yarn_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// fastHost is the number of the NodeManager with the label fast; the queue train alone may use it.
const fastHost = 2

// queues are a queue train beside default, and what priorities and labels need.
var queues = hadoop.YARNOptions{
	NodeManagers: 3,
	Labels:       map[int]string{fastHost: "fast"},
	Site:         map[string]string{"yarn.cluster.max-application-priority": "9"},
	Scheduler: map[string]string{
		"yarn.scheduler.capacity.root.queues":                                       "default,train",
		"yarn.scheduler.capacity.root.default.capacity":                             "50",
		"yarn.scheduler.capacity.root.train.capacity":                               "50",
		"yarn.scheduler.capacity.root.train.maximum-capacity":                       "100",
		"yarn.scheduler.capacity.root.accessible-node-labels":                       "fast",
		"yarn.scheduler.capacity.root.accessible-node-labels.fast.capacity":         "100",
		"yarn.scheduler.capacity.root.train.accessible-node-labels":                 "fast",
		"yarn.scheduler.capacity.root.train.accessible-node-labels.fast.capacity":   "100",
		"yarn.scheduler.capacity.root.default.accessible-node-labels":               "",
		"yarn.scheduler.capacity.root.default.accessible-node-labels.fast.capacity": "0",
	},
}

// TestQueues: queue, priority, node labels and placement are what the ResourceManager was told, in both forms.
func TestQueues(t *testing.T) {
	l := labWith(t, queues)
	for _, form := range []string{"service", "shell"} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			l.of(t).queued(form)
		})
	}
}

// queued submits a training whose ps wants a host of the label, and whose two workers want a host each; all of the
// distributed shell's want the label.
func (l *lab) queued(form string) {
	app := "queued-" + form
	args := append(l.endless(app), "--queue", "train", "--priority", "7", "--instances", "worker=2",
		"--set", "ps:yarn.label.expression=fast")
	if form == "service" {
		args = append(args, "--set", "worker:yarn.component.placement.policy=4")
	} else {
		args = append(args, "--set", "worker:yarn.label.expression=fast") // one application has one label
	}
	j := l.submit(form, app, args...)
	s := j.awaitPhase("running")
	j.queuedRight(form)
	for _, in := range s.Instances {
		folder := strings.Join(j.logs(in.Instance, "agent.log"), ", ")
		wants := in.Instance == "ps-0" || form == "shell"
		if fast := strings.Contains(folder, fmt.Sprintf("/node-%d/", fastHost)); fast != wants {
			j.t.Errorf("%s is at %s: the label fast is of host %d", in.Instance, folder, fastHost)
		}
	}
	j.y.Kill(j.id)
}

// queuedRight holds what the ResourceManager says against what was asked for.
func (j *job) queuedRight(form string) {
	got := j.y.Application(j.id)
	if got.Queue != "train" && got.Queue != "root.train" || got.Priority != 7 {
		j.t.Errorf("%s: got queue %s, priority %d; want train, 7", j.id, got.Queue, got.Priority)
	}
	if form != "service" {
		return
	}
	var hosts []int
	for _, c := range j.y.Containers(j.id) {
		if !strings.HasSuffix(c.ContainerID, "_000001") && c.Node != fastHost { // the first is the master
			hosts = append(hosts, c.Node)
		}
	}
	slices.Sort(hosts)
	if !slices.Equal(hosts, []int{0, 1}) {
		j.t.Errorf("the workers are on the hosts %v, want one on each of 0 and 1", hosts)
	}
}
