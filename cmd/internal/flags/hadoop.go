package flags

import "github.com/muster-agent/muster/shim/hadoop"

// Hadoop say where a cluster is and who we are to it.
type Hadoop struct{ hadoop.Login }

// Register adds the flags.
func (f *Hadoop) Register(flags Set) {
	flags.StringVar(&f.Conf, "hadoop-conf", "", "`DIR` of Hadoop's configuration (default: HADOOP_CONF_DIR)")
	flags.StringVar(&f.Keytab, "kerberos-keytab", "",
		"`FILE` with the Kerberos key (default: the ticket cache, KRB5CCNAME)")
	flags.StringVar(&f.Principal, "kerberos-principal", "", "`NAME[@REALM]` that the keytab belongs to")
}

// args are the same choices as arguments for an agent.
func (f Hadoop) args() []string {
	var out []string
	for _, one := range []struct{ flag, value string }{
		{"--hadoop-conf", f.Conf}, {"--kerberos-keytab", f.Keytab}, {"--kerberos-principal", f.Principal},
	} {
		if one.value != "" {
			out = append(out, one.flag, one.value)
		}
	}
	return out
}

// Filesystem names the default filesystem: that of paths without a scheme, and the value of ${NN_URI}.
type Filesystem struct {
	URI    string
	Hadoop Hadoop
}

// Register adds the flags.
func (f *Filesystem) Register(flags Set) {
	f.Hadoop.Register(flags)
	flags.StringVar(&f.URI, "default-fs", "",
		"filesystem `URI` for paths without a scheme (default: Hadoop's fs.defaultFS)")
}

// Args are the same choice as arguments for an agent.
func (f *Filesystem) Args() []string {
	if f.URI == "" {
		return f.Hadoop.args()
	}
	return append(f.Hadoop.args(), "--default-fs", f.URI)
}

// Resolve finds the default filesystem.
func (f *Filesystem) Resolve() (hadoop.DefaultFS, error, error) {
	return hadoop.FindDefaultFS(f.URI, f.Hadoop.Login)
}
