package hadoop

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// Home is a folder as HADOOP_HOME is one on a person's host: bin with the commands yarn and hdfs for this cluster, and
// the distributed shell where the scripts that muster writes look for it.
func (y *YARN) Home() string { return filepath.Join(y.Dir, "hadoop") }

// layPrograms lays it out.
func (y *YARN) layPrograms() {
	y.t.Helper()
	jars, err := filepath.Glob(filepath.Join(y.c.home.dir, "lib", "hadoop-yarn-applications-distributedshell-*.jar"))
	if err != nil || len(jars) != 1 {
		y.t.Fatalf("distributed shell in %s: got %v, %v, want one", y.c.home.dir, jars, err)
	}
	bin, share := filepath.Join(y.Home(), "bin"), filepath.Join(y.Home(), "share/hadoop/yarn")
	err = errors.Join(os.MkdirAll(bin, 0o755), os.MkdirAll(share, 0o755),
		os.Symlink(jars[0], filepath.Join(share, filepath.Base(jars[0]))))
	java := func(args []string) string {
		args = args[:len(args)-1] // the class
		words := []string{"exec", quoted(y.c.home.java)}
		for _, arg := range args {
			words = append(words, quoted(arg))
		}
		return strings.Join(words, " ")
	}
	own := "export HADOOP_CONF_DIR=${HADOOP_CONF_DIR:-" + quoted(y.ConfDir) + "}\n"
	yarn := "#!/bin/sh\n" + own + `
case ${1:?COMMAND} in
jar) shift 2 ;;
app | application | applicationattempt | container) set -- org.apache.hadoop.yarn.client.cli.ApplicationCLI "$@" ;;
*) echo "yarn: $1: not here" >&2; exit 64 ;;
esac
` + java(y.c.home.yarnArgs("160m", y.ConfDir, "", "-Dmuster.log=INFO")) + ` "$@"
`
	hdfs := "#!/bin/sh\n" + own + `
case ${1:?COMMAND} in
dfs) shift ;;
*) echo "hdfs: $1: not here" >&2; exit 64 ;;
esac
` + java(y.c.home.javaArgs("96m", y.ConfDir, "")) + " " + classes["dfs"] + ` "$@"
`
	for name, text := range map[string]string{"yarn": yarn, "hdfs": hdfs} {
		//nolint:gosec // they are run
		err = errors.Join(err, os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755))
	}
	if err != nil {
		y.t.Fatal(err)
	}
}

func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
