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
)

// hadoopLogin says where the configuration of a cluster is and who this process is to it.
type hadoopLogin struct{ conf, keytab, principal string }

// check refuses what cannot be meant.
func (l hadoopLogin) check() error {
	if (l.keytab == "") != (l.principal == "") {
		return exit.Usagef("--kerberos-keytab and --kerberos-principal belong together: got %q and %q", l.keytab, l.principal)
	}
	if l.conf != "" && !isFolder(l.conf) {
		return exit.Usagef("--hadoop-conf %s: want the folder that core-site.xml and hdfs-site.xml are in", l.conf)
	}
	return nil
}

// dir is the folder of Hadoop's configuration, from / on; empty: there is none.
func (l hadoopLogin) dir() string {
	dir := absolute(cmp.Or(l.conf, hdfs.ConfDir()))
	if _, err := os.Stat(filepath.Join(dir, "core-site.xml")); err == nil {
		return dir
	}
	if _, err := os.Stat(filepath.Join(dir, "hdfs-site.xml")); err == nil {
		return dir
	}
	return ""
}

// config is how clusters are reached as somebody; empty: as this process.
func (l hadoopLogin) config(user string) hdfs.Config {
	c := hdfs.Config{User: user, Keytab: l.keytab, Principal: l.principal}
	if l.conf != "" {
		c.Conf = absolute(l.conf)
	}
	return c
}

// fetching is how files are fetched: HDFS is among the stores. Who waits for one is told so; nil: nobody.
func (l hadoopLogin) fetching(tell io.Writer) fetch.Options {
	schemes, c := fetch.Schemes(), l.config("")
	if tell != nil {
		c.Notice = func(text string) { fmt.Fprintln(tell, text) }
	}
	schemes[hdfs.Scheme] = c.Opener()
	return fetch.Options{Schemes: schemes}
}
