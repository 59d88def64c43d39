package shim

import (
	"cmp"
	"fmt"

	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/schemes"
)

// stores are those of the definition's data, for its process's user.
func (a *agent) stores(p plan.Plan) store.Set {
	c := a.hadoop.Config(a.hadoopUser(p))
	c.Notice = func(text string) {
		a.log.Warn("waiting for a store", "cause", text)
		fmt.Fprintln(a.logFile.also, "muster: "+text) // whoever started us sees nothing else meanwhile
	}
	return schemes.All(c)
}

// hadoopUser is who acts on HDFS where Kerberos does not say it: who the process is told to be.
func (a *agent) hadoopUser(p plan.Plan) string {
	name := ""
	if a.container.User() != nil {
		name = a.container.User().Name
	}
	if p.Hadoop != nil {
		name = cmp.Or(p.Hadoop.User, name)
	}
	return cmp.Or(p.Process.Env["HADOOP_USER_NAME"], p.Process.Inherited["HADOOP_USER_NAME"], name, a.alloc.User)
}
