package slider_test

import (
	"fmt"
	"os"

	"github.com/muster-agent/muster/appdef/slider"
)

func ExampleLoad() {
	app, problems := slider.Load(os.DirFS("testdata/base"), slider.Options{
		Instances: []string{"worker=2"},
		Set:       []string{"worker:yarn.memory=2g", "muster.restart.buget=1"},
	})
	for _, c := range app.Components {
		fmt.Println(c.Name, c.Instances, c.Settings.Role, c.Settings.ClusterExport)
	}
	for _, p := range problems {
		fmt.Println(p.Severity, p)
	}
	// Output:
	// ps 1 ps ps-host_port
	// worker 2 worker worker-host_port
	// warning --set#/global/muster.restart.buget: got unknown key "muster.restart.buget", want a key that muster knows; did you mean muster.restart.budget?
	// error --set#/worker/yarn.memory: got "2g", want a whole number, 1 or more, or max; the unit is MB
}
