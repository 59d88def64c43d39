package hadoop

import (
	"bufio"
	"cmp"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/store/hdfs"
)

// FindFacts finds what there is of Hadoop on this host: its configuration in the folder conf, the rest as environ (of
// the agent and --env) and the usual places say. nil: there is no configuration. Who names a keytab by login means it:
// tokens, which end after days, are not handed on then.
func FindFacts(conf string, login Login, environ map[string]string) *plan.HadoopFacts {
	if conf == "" {
		return nil
	}
	f := &plan.HadoopFacts{Conf: conf, Home: hadoopHome(conf, environ), Java: javaHome(conf, environ)}
	f.HDFSHome = environ["HADOOP_HDFS_HOME"]
	if f.HDFSHome == f.Home {
		f.HDFSHome = ""
	}
	f.JVM = firstWith("libjvm.so", jvmFolders(f.Java)...)
	f.Native = firstWith("libhadoop.so", nativeFolders(f)...)
	libhdfs := firstWith("libhdfs.so", nativeFolders(f)...)
	f.Native = cmp.Or(f.Native, libhdfs)
	f.Classes = classFolders(f, environ["HADOOP_CLASSPATH"])
	f.Jars = jarsIn(f.Classes)
	f.Libhdfs = libhdfs != "" && f.JVM != "" && len(f.Jars) > 0
	if f.Tickets = usesKerberos(conf); f.Tickets {
		f.Krb5 = environ["KRB5_CONFIG"]
		f.Tokens = environ[plan.TokensVariable] != "" && login.Keytab == ""
	}
	return f
}

// usesKerberos tells whether the clusters of a configuration ask for tickets.
func usesKerberos(dir string) bool {
	conf, err := hdfs.LoadConf(dir)
	return err == nil && conf.Secure()
}

// hadoopHome is where Hadoop itself lies: what is told, where the configuration is a part of it, or where `hadoop` is.
func hadoopHome(conf string, environ map[string]string) string {
	if home := cmp.Or(environ["HADOOP_HOME"], environ["HADOOP_PREFIX"], environ["HADOOP_HDFS_HOME"]); home != "" {
		return absolutePath(home)
	}
	candidates := []string{}
	if top, ok := strings.CutSuffix(filepath.Clean(files.Resolve(conf)), "/etc/hadoop"); ok {
		candidates = append(candidates, top)
	}
	if program := programIn("hadoop", environ["PATH"]); program != "" {
		candidates = append(candidates, filepath.Dir(filepath.Dir(program)))
	}
	candidates = append(candidates, "/opt/hadoop", "/usr/local/hadoop", "/usr/lib/hadoop")
	i := slices.IndexFunc(candidates, func(dir string) bool {
		return files.IsFolder(filepath.Join(dir, "share/hadoop/common")) || files.IsFolder(filepath.Join(dir, "client"))
	})
	if i < 0 {
		return ""
	}
	return candidates[i]
}

// javaHome is the Java that is told, by a variable or by Hadoop's own settings, else the one of PATH.
func javaHome(conf string, environ map[string]string) string {
	if home := cmp.Or(environ["JAVA_HOME"], settingOf(filepath.Join(conf, "hadoop-env.sh"), "JAVA_HOME")); home != "" {
		return absolutePath(home)
	}
	program := programIn("java", environ["PATH"])
	if program == "" {
		return ""
	}
	return strings.TrimSuffix(filepath.Dir(filepath.Dir(program)), "/jre")
}

// programIn is where a program of a PATH truly lies; empty: nowhere.
func programIn(name, path string) string {
	for _, dir := range filepath.SplitList(path) {
		at := filepath.Join(dir, name)
		if filepath.IsAbs(at) && files.IsProgram(at) {
			return files.Resolve(at)
		}
	}
	return ""
}

// mostSettings is more than a file of Hadoop's settings has, in bytes.
const mostSettings = 1 << 20

// settingOf is a plain `export NAME=value` in a shell's file; empty: there is none, or it needs a shell.
func settingOf(path, name string) string {
	text, err := files.ReadHost(path, mostSettings)
	if err != nil {
		return ""
	}
	value := ""
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		line := strings.TrimPrefix(strings.TrimSpace(lines.Text()), "export ")
		if v, ok := strings.CutPrefix(line, name+"="); ok && !strings.ContainsAny(v, "$`") {
			value = strings.Trim(v, `"'`)
		}
	}
	return value
}

// jvmFolders are where a Java has its libjvm: since 9, and before.
func jvmFolders(java string) []string {
	if java == "" {
		return nil
	}
	return []string{
		filepath.Join(java, "lib/server"),
		filepath.Join(java, "jre/lib", jvmArch(), "server"),
		filepath.Join(java, "jre/lib/server"),
	}
}

// jvmArch is what Java calls this kind of machine.
func jvmArch() string {
	if runtime.GOARCH == "arm64" {
		return "aarch64"
	}
	return runtime.GOARCH
}

// nativeFolders are where Hadoop's own libraries may be.
func nativeFolders(f *plan.HadoopFacts) []string {
	var all []string
	for _, home := range []string{f.Home, f.HDFSHome} {
		if home != "" {
			all = append(all, filepath.Join(home, "lib/native"))
		}
	}
	return all
}

func firstWith(file string, dirs ...string) string {
	i := slices.IndexFunc(dirs, func(dir string) bool { return files.IsFile(filepath.Join(dir, file)) })
	if i < 0 {
		return ""
	}
	return dirs[i]
}

// classFolders are the folders of jars in the order of `hadoop classpath`, of Hadoop's own layout and of those that
// distributions make of it, then what HADOOP_CLASSPATH names.
func classFolders(f *plan.HadoopFacts, more string) []string {
	var all []string
	add := func(dir string) {
		if !slices.Contains(all, dir) && len(jarsOf(dir)) > 0 {
			all = append(all, dir)
		}
	}
	for _, home := range []string{f.Home, f.HDFSHome} {
		if home == "" {
			continue
		}
		for _, part := range []string{"common", "hdfs", "mapreduce", "yarn"} {
			add(filepath.Join(home, "share/hadoop", part, "lib"))
			add(filepath.Join(home, "share/hadoop", part))
		}
		add(filepath.Join(home, "lib"))
		add(home)
	}
	if f.Home != "" && f.HDFSHome == "" { // /usr/lib/hadoop has them beside it
		for _, part := range []string{"lib", ""} {
			add(filepath.Join(f.Home+"-hdfs", part))
		}
	}
	for _, one := range filepath.SplitList(more) {
		if dir, ok := strings.CutSuffix(one, "/*"); ok {
			add(dir)
		} else if one != "" && filepath.IsAbs(one) && !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

// jarsIn is a class path without patterns, which Java reads and a JVM that a program makes does not: of a folder with
// jars all of them, sorted; anything else stands for itself.
func jarsIn(classes []string) []string {
	var all []string
	for _, one := range classes {
		jars := jarsOf(one)
		if len(jars) == 0 {
			jars = []string{one}
		}
		all = append(all, jars...)
	}
	return all
}

// jarsOf are the jars of a folder, but those of tests and sources.
func jarsOf(dir string) []string {
	var all []string
	for _, name := range files.HostNames(dir) {
		other := strings.HasSuffix(name, "-tests.jar") || strings.HasSuffix(name, "-sources.jar")
		if strings.HasSuffix(name, ".jar") && !other {
			all = append(all, filepath.Join(dir, name))
		}
	}
	return all
}
