package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/muster-agent/muster/packages/fetch"
	"github.com/muster-agent/muster/packages/hdfs"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/stage"
)

// hadoopFlags say where a cluster is and who we are to it.
type hadoopFlags struct{ conf, keytab, principal string }

func (f *hadoopFlags) register(flags flagSet) {
	flags.StringVar(&f.conf, "hadoop-conf", "", "`DIR` of Hadoop's configuration (default: HADOOP_CONF_DIR, else HADOOP_HOME/etc/hadoop, else /etc/hadoop/conf)")
	flags.StringVar(&f.keytab, "kerberos-keytab", "", "`FILE` with the key to log in to Kerberos with, and again before the ticket ends (default: the ticket cache, KRB5CCNAME)")
	flags.StringVar(&f.principal, "kerberos-principal", "", "`NAME[@REALM]` that the keytab is of")
}

// args are the same choices as arguments for an agent.
func (f hadoopFlags) args() []string {
	var out []string
	for _, one := range []struct{ flag, value string }{
		{"--hadoop-conf", f.conf}, {"--kerberos-keytab", f.keytab}, {"--kerberos-principal", f.principal},
	} {
		if one.value != "" {
			out = append(out, one.flag, one.value)
		}
	}
	return out
}

// check refuses what cannot be meant.
func (f hadoopFlags) check() error {
	if (f.keytab == "") != (f.principal == "") {
		return exit.Usagef("--kerberos-keytab and --kerberos-principal belong together: got %q and %q", f.keytab, f.principal)
	}
	if f.conf != "" && !isFolder(f.conf) {
		return exit.Usagef("--hadoop-conf %s: want the folder that core-site.xml and hdfs-site.xml are in", f.conf)
	}
	return nil
}

// dir is the folder of Hadoop's configuration, from / on; empty: there is none.
func (f hadoopFlags) dir() string {
	dir := absolute(cmp.Or(f.conf, hdfs.ConfDir()))
	if _, err := os.Stat(filepath.Join(dir, "core-site.xml")); err == nil {
		return dir
	}
	if _, err := os.Stat(filepath.Join(dir, "hdfs-site.xml")); err == nil {
		return dir
	}
	return ""
}

// config is how clusters are reached as somebody; empty: as this process.
func (f hadoopFlags) config(user string) hdfs.Config {
	c := hdfs.Config{User: user, Keytab: f.keytab, Principal: f.principal}
	if f.conf != "" {
		c.Conf = absolute(f.conf)
	}
	return c
}

// fetching is how files are fetched: HDFS is among the stores. Who waits for one is told so; nil: nobody.
func (f hadoopFlags) fetching(tell io.Writer) fetch.Options {
	schemes, c := fetch.Schemes(), f.config("")
	if tell != nil {
		c.Notice = func(text string) { fmt.Fprintln(tell, text) }
	}
	schemes[hdfs.Scheme] = c.Opener()
	return fetch.Options{Schemes: schemes}
}

// stores are those of the definition's data, for its process's user.
func (a *agent) stores(p plan.Plan) stage.Stores {
	c := a.hadoop.config(a.hadoopUser(p))
	c.Notice = func(text string) {
		a.log.Warn("waiting for a store", "cause", text)
		fmt.Fprintln(a.logFile.also, "muster: "+text) // whoever started us sees nothing else meanwhile
	}
	return stage.Stores{HDFS: c}
}

// hadoopUser is who acts on HDFS where Kerberos does not say it: who the process is told to be.
func (a *agent) hadoopUser(p plan.Plan) string {
	name := ""
	if a.user != nil {
		name = a.user.Name
	}
	if p.Hadoop != nil {
		name = cmp.Or(p.Hadoop.User, name)
	}
	return cmp.Or(p.Process.Env["HADOOP_USER_NAME"], p.Process.Inherited["HADOOP_USER_NAME"], name, a.alloc.User)
}
