package publisher

import (
	"time"

	"github.com/muster-agent/muster/registry"
)

// born is when the view's app was created; its members published some seconds later.
var born = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return born.Add(time.Duration(seconds) * time.Second) }

// member is one that lives, with the export host_port of the group named by its component.
func member(component string, index, seconds int, tag, host, port string) memberView {
	name := registry.Instance{Component: component, Index: index}.String()
	return memberView{
		Component: component, Index: index, Instance: name, Host: host, ContainerID: "container_17_0001_01_" + name, Tag: tag,
		Exports: map[string]string{component + ".host_port": host + ":" + port}, Since: at(seconds),
		Phase: registry.PhaseReady, LogDir: "/logs/" + name, WorkDir: "/work/" + name, Up: true,
	}
}

// rich is Slider's TensorFlow app with all that can be asked about. ps-1 published before ps-0, and worker-2 has gone.
func rich() View {
	ps0, ps1 := member("ps", 0, 7, "2", "h1", "2222"), member("ps", 1, 3, "1", "h2", "2223")
	ps0.Ports, ps1.Ports = map[string]int{"global.ps.port": 2222, "global.ps.debug": 3000}, map[string]int{"global.ps.port": 2223, "global.ps.debug": 3001}
	ps0.Exports["ps.debug"], ps1.Exports["ps.debug"] = "http://h1:3000", "http://h2:3001"
	chief := member("chiefworker", 0, 5, "1", "h1", "2224")
	w0, w1, w2 := member("worker", 0, 6, "1", "h2", "2225"), member("worker", 1, 6, "2", "h3", "2226"), member("worker", 2, 4, "3", "h3", "2227")
	w1.Phase, w1.ContainerID = registry.PhaseJoined, "" // a launcher without a word for it
	w2.Phase, w2.Up = registry.PhaseLost, false
	board := member("tensorboard", 0, 9, "1", "h3", "6006")
	board.Exports = map[string]string{"Quicklinks.tensorboard": "http://h3:6006", instanceData + ".url": "http://h3:6006/#scalars"}
	return View{
		App:     appView{Name: "tf1", ID: "tf1-7", User: "ada", Version: "0.1.1", Created: born},
		Members: []memberView{ps0, ps1, chief, w0, w1, w2, board},
		Groups: []groupView{
			{Name: "ps", Exports: []exported{{"host_port", levelComponent}, {"debug", levelComponent}}},
			{Name: "chiefworker", Exports: []exported{{"host_port", levelComponent}}},
			{Name: "worker", Exports: []exported{{"host_port", levelComponent}}},
			{Name: "Quicklinks", Exports: []exported{{"tensorboard", levelApplication}, {"unknown", levelApplication}}},
			{Name: "Later", Exports: []exported{{"nothing", levelComponent}}},
		},
		Components: []componentView{
			{
				Name: "ps", Instances: 2, Priority: 1, Started: 3, Failed: 1, FailedRecently: 1,
				Resources: map[string]string{"yarn.memory": "2048", "yarn.component.instances": "2", "yarn.role.priority": "1"},
				Config:    map[string]string{"site.global.ps.port": "${ps.ALLOCATED_PORT}{PER_CONTAINER}"},
			},
			{Name: "chiefworker", Instances: 1, Priority: 2, Started: 1, Resources: map[string]string{"yarn.memory": "4096", "yarn.vcores": "2"}},
			{
				Name: "worker", Instances: 3, Priority: 3, Started: 3, Completed: 1,
				Resources: map[string]string{"yarn.memory": "2048", "yarn.vcores": "1", "yarn.component.placement.policy": "4"},
			},
			{Name: "tensorboard", Instances: 1, Priority: 4, Started: 1},
		},
		Configs: map[string]configuration{
			"Tf-Site": {Updated: at(8), Entries: map[string]string{
				"fs.defaultFS": "hdfs://nn:8020", "note": " a <b> & \"c\"\nd=ü", "key with = and :": `back\slash`,
			}},
		},
		AppConf:   map[string]string{"application.def": "tf.zip", "site.global.user.name": "ada"},
		Resources: map[string]string{"yarn.vcores": "4"},
	}
}
