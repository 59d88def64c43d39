package frameworks

import (
	"strconv"
	"strings"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// lightGBMList is HBox's list of machines, one `host port` per line.
const lightGBMList = "lightGBMlist.txt"

// lightgbm tells a worker the number of machines, the port on which it listens and, in a file, the addresses of all in
// rank order. LightGBM finds itself in that list by its own addresses, so the hosts must be numbers.
func lightgbm(p plan.Plan, r registry.Roster) (env, files map[string]string) {
	env, files = none()
	all := plan.ClusterOf(r).Leading()
	at := placeOf(all, p)
	if at < 0 {
		return env, files
	}
	var list strings.Builder
	for _, row := range all {
		host, port := split(row.Addr)
		list.WriteString(host + " " + port + "\n")
	}
	files[lightGBMList] = list.String()
	env["LIGHTGBM_NUM_MACHINE"] = strconv.Itoa(len(all))
	_, env["LIGHTGBM_LOCAL_LISTEN_PORT"] = split(all[at].Addr)
	return env, files
}
