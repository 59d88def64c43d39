package frameworks

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// HBox's list of servers for workers, `index host:port` per line, and the name that XLearning and the example of both
// have.
const (
	hboxEndPoints      = "lightLdaEndPoints.txt"
	xlearningEndPoints = "lightLDAEndPoints.txt"
)

// noEndPoint is HBox's value for a worker's own address as a server.
const noEndPoint = "null"

// lightlda lists the parameter servers to which LightLDA's workers write. The rank is the position within the role.
func lightlda(p plan.Plan, r registry.Roster) (env, files map[string]string) {
	env, files = none()
	workers, ps := trainers(r), plan.ClusterOf(r).PS
	at, role, endPoint := placeOf(ps, p), "ps", noEndPoint
	if at >= 0 {
		endPoint = ps[at].Addr
	} else if at, role = placeOf(workers, p), "worker"; at < 0 || len(ps) == 0 {
		return env, files
	} else {
		files[hboxEndPoints] = endPoints(ps)
		files[xlearningEndPoints] = files[hboxEndPoints]
	}
	return tell(map[string]string{
		"LIGHTLDA_WORKER_NUM": strconv.Itoa(len(workers)), "LIGHTLDA_SERVER_NUM": strconv.Itoa(len(ps)),
		"LIGHTLDA_RANK": strconv.Itoa(at), "LIGHTLDA_ROLE": role, "LIGHTLDA_SERVER_ENDPOINT": endPoint,
	}), files
}

func endPoints(ps []registry.Row) string {
	var list strings.Builder
	for i, row := range ps {
		fmt.Fprintf(&list, "%d %s\n", i, row.Addr)
	}
	return list.String()
}
