package hadoop

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// recipe is the version of tests/servers/hadoop/pom.xml, a part of the folder's name.
const recipe = "3.4.2"

// home is what `scripts/lab/hadoop build` left.
type home struct {
	dir, java, classpath string
	krb5                 string // the KDC's programs; empty where there are none
	yarnClasspath        string // classpath with what YARN needs beyond it; empty where YARN is not there
}

func find() (home, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return home{}, err
	}
	h := home{dir: filepath.Join(cache, "muster", "hadoop", recipe)}
	if _, err := os.Stat(filepath.Join(h.dir, "ready")); err != nil {
		return home{}, fmt.Errorf("no Hadoop at %s (get it with scripts/lab/hadoop build): %w", h.dir, err)
	}
	for name, into := range map[string]*string{"java": &h.java, "classpath": &h.classpath, "krb5": &h.krb5} {
		b, err := os.ReadFile(filepath.Join(h.dir, name))
		if err != nil {
			return home{}, err
		}
		*into = strings.TrimSpace(string(b))
	}
	// laid out later than the rest, and of no concern to whom HDFS is enough
	if _, err := os.Stat(filepath.Join(h.dir, "yarn.jsa")); err == nil {
		b, err := os.ReadFile(filepath.Join(h.dir, "yarn-classpath"))
		if err != nil {
			return home{}, err
		}
		h.yarnClasspath = strings.TrimSuffix(h.classpath+":"+strings.TrimSpace(string(b)), ":")
	}
	return h, nil
}

// javaArgs is how a class of Hadoop's is run: little memory, a quick start, and what Java closed after version 8
// opened.
func (h home) javaArgs(heap, confDir, class string, properties ...string) []string {
	args := []string{
		"-Xmx" + heap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-XX:SharedArchiveFile=" + filepath.Join(h.dir, "classes.jsa"),
		"--add-opens=java.base/java.lang=ALL-UNNAMED", "-Djava.net.preferIPv4Stack=true",
		"-XX:-UsePerfData", // its files would be in /tmp
	}
	args = append(args, properties...)
	// the archive of classes holds for the jars in this order; the rest must follow them
	return append(args, "-cp", h.classpath+":"+filepath.Join(h.dir, "web")+":"+confDir, class)
}

// yarnArgs is javaArgs for the classes of YARN.
func (h home) yarnArgs(heap, confDir, class string, properties ...string) []string {
	args := h.javaArgs(heap, confDir, class, properties...)
	for i, arg := range args {
		switch arg {
		case "-XX:SharedArchiveFile=" + filepath.Join(h.dir, "classes.jsa"):
			args[i] = "-XX:SharedArchiveFile=" + filepath.Join(h.dir, "yarn.jsa")
		case "-cp":
			args[i+1] = h.yarnClasspath + ":" + filepath.Join(h.dir, "web") + ":" + confDir
		}
	}
	return args
}
