package main

import "github.com/muster-agent/muster/shim/hadoop"

// hadoopFlags say where a cluster is and who we are to it.
type hadoopFlags struct{ hadoop.Login }

func (f *hadoopFlags) register(flags flagSet) {
	flags.StringVar(&f.Conf, "hadoop-conf", "", "`DIR` of Hadoop's configuration (default: HADOOP_CONF_DIR, else HADOOP_HOME/etc/hadoop, else /etc/hadoop/conf)")
	flags.StringVar(&f.Keytab, "kerberos-keytab", "", "`FILE` with the key to log in to Kerberos with, and again before the ticket ends (default: the ticket cache, KRB5CCNAME)")
	flags.StringVar(&f.Principal, "kerberos-principal", "", "`NAME[@REALM]` that the keytab is of")
}

// args are the same choices as arguments for an agent.
func (f hadoopFlags) args() []string {
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

// filesystemFlag names the default filesystem: that of paths without a scheme, and the value of ${NN_URI}.
type filesystemFlag struct {
	uri    string
	hadoop hadoopFlags
}

func (f *filesystemFlag) register(flags flagSet) {
	f.hadoop.register(flags)
	flags.StringVar(&f.uri, "default-fs", "", "`URI` of the filesystem that paths of data without a scheme are in (default: fs.defaultFS of Hadoop's core-site.xml, else the folder store in the work folder)")
}

// args are the same choice as arguments for an agent.
func (f *filesystemFlag) args() []string {
	if f.uri == "" {
		return f.hadoop.args()
	}
	return append(f.hadoop.args(), "--default-fs", f.uri)
}

// resolve finds the default filesystem.
func (f *filesystemFlag) resolve() (hadoop.DefaultFS, error, error) {
	return hadoop.FindDefaultFS(f.uri, f.hadoop.Login)
}
