package plan

import (
	"github.com/muster-agent/muster/appdef"
)

// trainingApp is an App as a loader leaves it: parameter servers, workers, TensorBoard; each exports
// its port.
func trainingApp() appdef.App {
	config := map[string]string{
		"site.global.ps.port":             "${ps.ALLOCATED_PORT}{PER_CONTAINER}",
		"site.global.worker.port":         "${worker.ALLOCATED_PORT}{DEFAULT_2222}{PER_CONTAINER}",
		"site.global.board":               "${tensorboard.ALLOCATED_PORT}{PER_CONTAINER}",
		"site.global.user.scripts.entry":  "mnist.py",
		"site.global.user.checkpoint.dir": "hdfs://nn/user/${USER_NAME}/ckpt",
	}
	one := 1
	component := func(name string, role appdef.Role, n, priority int, export string) appdef.Component {
		c := appdef.Component{
			Name: name, Category: "MASTER", Type: "STANDARD", Instances: n, MaxInstances: -1, Priority: priority,
			Config: config, Limits: appdef.Limits{MemoryMB: 512, VCores: 1},
			CompExports: []appdef.ExportRef{{Group: name, Name: export}},
			Scripts: appdef.Scripts{
				CommandScript: &appdef.CommandScript{Script: "scripts/tensorflow.py", Type: "PYTHON"},
			},
			Settings: appdef.ComponentSettings{
				Role: role, CommandFrom: "commandScript", Complete: appdef.Complete{MinFailed: &one},
				Restart: appdef.Restart{
					Scope: appdef.ScopeInstance, Budget: 5, Window: 300, BackoffMin: 1, BackoffMax: 60, Refill: "checkpoint",
				},
				Stop: appdef.Stop{Signal: "TERM"},
			},
		}
		if role != appdef.RoleService {
			c.Settings.ClusterExport = c.CompExports[0]
		}
		return c
	}
	group := func(name, export, value string) appdef.ExportGroup {
		return appdef.ExportGroup{Name: name, Exports: []appdef.Export{{Name: export, Value: value}}}
	}
	return appdef.App{
		Name: "mnist", Dialect: "slider", Schema: "2.1", Config: config,
		Components: []appdef.Component{
			component("tensorboard", appdef.RoleService, 1, 1, "url"),
			component("worker", appdef.RoleWorker, 3, 3, "host_port"),
			component("ps", appdef.RolePS, 2, 2, "host_port"),
		},
		ExportGroups: []appdef.ExportGroup{
			group("ps", "host_port", "${ps_HOST}:${site.global.ps.port}"),
			group("worker", "host_port", "${worker_HOST}:${site.global.worker.port}"),
			group("tensorboard", "url", "http://${tensorboard_HOST}:${site.global.board}"),
		},
		Contents: appdef.Contents{Packages: []appdef.Package{{Type: "folder", Name: "files"}}},
		Settings: appdef.AppSettings{
			Framework: "tensorflow", FrameworkWhy: "the application's name", Barrier: 1800, StageTimeout: 1800,
			GangBudget: appdef.Restart{Scope: appdef.ScopeGang, Budget: 3, Window: 60, BackoffMin: 1, BackoffMax: 60, Refill: "never"},
		},
	}
}

// with changes one component of the app.
func with(app appdef.App, component string, change func(*appdef.Component)) appdef.App {
	app.Components = append([]appdef.Component{}, app.Components...)
	change(app.Component(component))
	return app
}

func request(component string, index int) Request {
	return Request{
		AppID: "d1", Component: component, Index: index,
		Allocation: Allocation{Launcher: "shell", Host: "10.0.0.1", User: "ada"},
		Engine:     EngineChoice{Name: "process", Why: "no writable cgroup"},
	}
}
