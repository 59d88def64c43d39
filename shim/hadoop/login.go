package hadoop

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/hdfs"
	"github.com/muster-agent/muster/shim/store/schemes"
)

// Login says where the configuration of a cluster is and who this process is to it.
type Login struct{ Conf, Keytab, Principal string }

// Check refuses what cannot be meant.
func (l Login) Check() error {
	if (l.Keytab == "") != (l.Principal == "") {
		return exit.Usagef(
			"--kerberos-keytab and --kerberos-principal belong together: got %q and %q", l.Keytab, l.Principal,
		)
	}
	if l.Conf != "" && !files.IsFolder(l.Conf) {
		return exit.Usagef("--hadoop-conf %s: want the folder that core-site.xml and hdfs-site.xml are in", l.Conf)
	}
	return nil
}

// Dir is the folder of Hadoop's configuration, from / on; empty: there is none.
func (l Login) Dir() string {
	dir := absolutePath(cmp.Or(l.Conf, hdfs.ConfDir()))
	if _, err := os.Stat(filepath.Join(dir, "core-site.xml")); err == nil {
		return dir
	}
	if _, err := os.Stat(filepath.Join(dir, "hdfs-site.xml")); err == nil {
		return dir
	}
	return ""
}

// Config is how clusters are reached as somebody; empty: as this process.
func (l Login) Config(user string) hdfs.Config {
	c := hdfs.Config{User: user, Keytab: l.Keytab, Principal: l.Principal}
	if l.Conf != "" {
		c.Conf = absolutePath(l.Conf)
	}
	return c
}

// Stores are all stores. What one waits for is written to tell; nil: nowhere.
func (l Login) Stores(tell io.Writer) store.Set {
	c := l.Config("")
	if tell != nil {
		c.Notice = func(text string) { fmt.Fprintln(tell, text) }
	}
	return schemes.All(c)
}

// absolutePath is a path from / on.
func absolutePath(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return abs
}
