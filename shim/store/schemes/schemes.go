package schemes

import (
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/file"
	"github.com/muster-agent/muster/shim/store/hdfs"
	"github.com/muster-agent/muster/shim/store/web"
)

// Local are the stores that need nothing to be known of a cluster.
func Local() store.Set { return store.Set{"file": file.Open, "http": web.Open, "https": web.Open} }

// All are all stores; clusters are reached as c says.
func All(c hdfs.Config) store.Set {
	all := Local()
	all[hdfs.Scheme] = c.Opener()
	return all
}
