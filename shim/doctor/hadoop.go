package doctor

import (
	"fmt"
	"os"

	"github.com/muster-agent/muster/shim/hadoop"
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/store/hdfs"
)

// checkHadoop shows what processes would find of Hadoop here. muster itself needs only its configuration.
func checkHadoop() Check {
	const name = "hadoop"
	dir := hadoop.Login{}.Dir()
	if dir == "" {
		return good(name, "no configuration in %s: --hadoop-conf or HADOOP_CONF_DIR names one", hdfs.ConfDir())
	}
	f := hadoop.FindFacts(dir, hadoop.Login{}, launcher.Inherit(os.Environ(), nil))
	found := fmt.Sprintf("configuration %s", dir)
	if _, err := hdfs.LoadConf(dir); err != nil {
		return bad(name, "mend it, or name another folder by HADOOP_CONF_DIR", "%s: %v", found, err)
	}
	const inside = "; muster itself reads and writes HDFS without it"
	switch {
	case len(f.Jars) == 0:
		return bad(name, "install Hadoop where processes are to use it themselves, and set HADOOP_HOME"+inside,
			"%s, and no Hadoop", found)
	case f.JVM == "":
		return bad(name, "install a Java, and set JAVA_HOME"+inside, "%s, Hadoop %s, and no Java with libjvm.so", found,
			f.Home)
	case !f.Libhdfs:
		return bad(name, "put libhdfs.so into HADOOP_HOME/lib/native for programs that use it"+inside,
			"%s, Hadoop %s, Java %s, and no libhdfs.so", found, f.Home, f.Java)
	}
	return good(name, "%s, Hadoop %s, Java %s, libhdfs", found, f.Home, f.Java)
}
