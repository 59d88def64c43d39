package hadoop

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
)

// layFiles makes empty files, and programs where their path has bin/.
func layFiles(t *testing.T, top string, files ...string) {
	t.Helper()
	for _, name := range files {
		path := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil { //nolint:gosec // some are programs
			t.Fatal(err)
		}
	}
}

// What is found of Hadoop, in the layouts that it comes in.
func TestHadoopFacts(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files []string
		conf  string
		env   map[string]string
		want  *plan.HadoopFacts
	}{
		{"none", nil, "", nil, nil},
		{"configuration alone", []string{"etc/hadoop/conf/core-site.xml"}, "TOP/etc/hadoop/conf", nil, &plan.HadoopFacts{Conf: "TOP/etc/hadoop/conf"}},
		{
			"Apache's own, told by HADOOP_HOME", []string{
				"h/share/hadoop/common/c.jar", "h/share/hadoop/common/c-tests.jar", "h/share/hadoop/common/lib/b.jar", "h/share/hadoop/common/lib/a.jar", "h/share/hadoop/hdfs/d.jar",
				"h/share/hadoop/yarn/y.jar", "h/share/hadoop/mapreduce/README", "h/lib/native/libhadoop.so", "h/lib/native/libhdfs.so", "j/lib/server/libjvm.so", "conf/hdfs-site.xml",
			}, "TOP/conf", map[string]string{"HADOOP_HOME": "TOP/h", "JAVA_HOME": "TOP/j"}, &plan.HadoopFacts{
				Conf: "TOP/conf", Home: "TOP/h", Java: "TOP/j", JVM: "TOP/j/lib/server", Native: "TOP/h/lib/native", Libhdfs: true,
				Classes: []string{"TOP/h/share/hadoop/common/lib", "TOP/h/share/hadoop/common", "TOP/h/share/hadoop/hdfs", "TOP/h/share/hadoop/yarn"},
				Jars: []string{
					"TOP/h/share/hadoop/common/lib/a.jar", "TOP/h/share/hadoop/common/lib/b.jar", "TOP/h/share/hadoop/common/c.jar",
					"TOP/h/share/hadoop/hdfs/d.jar", "TOP/h/share/hadoop/yarn/y.jar",
				},
			},
		},
		{
			"by its programs and an old Java",
			[]string{"h/share/hadoop/common/c.jar", "h/bin/hadoop", "j/jre/bin/java", "j/jre/lib/amd64/server/libjvm.so", "j/jre/lib/aarch64/server/libjvm.so", "conf/core-site.xml"},
			"TOP/conf",
			map[string]string{"PATH": "/nowhere:TOP/h/bin:TOP/j/jre/bin"},
			&plan.HadoopFacts{
				Conf: "TOP/conf", Home: "TOP/h", Java: "TOP/j", JVM: "TOP/j/jre/lib/ARCH/server",
				Classes: []string{"TOP/h/share/hadoop/common"}, Jars: []string{"TOP/h/share/hadoop/common/c.jar"},
			},
		},
		{
			"its configuration is a part of it",
			[]string{"h/etc/hadoop/core-site.xml", "h/share/hadoop/common/c.jar"},
			"TOP/h/etc/hadoop", nil,
			&plan.HadoopFacts{Conf: "TOP/h/etc/hadoop", Home: "TOP/h", Classes: []string{"TOP/h/share/hadoop/common"}, Jars: []string{"TOP/h/share/hadoop/common/c.jar"}},
		},
		{
			"a distribution's folders, and HADOOP_CLASSPATH",
			[]string{"lib/hadoop/c.jar", "lib/hadoop/lib/a.jar", "lib/hadoop-hdfs/d.jar", "lib/hadoop-hdfs/lib/e.jar", "more/m.jar", "one.jar", "conf/core-site.xml"},
			"TOP/conf",
			map[string]string{"HADOOP_HOME": "TOP/lib/hadoop", "HADOOP_CLASSPATH": "TOP/more/*:TOP/one.jar:relative"},
			&plan.HadoopFacts{
				Conf: "TOP/conf", Home: "TOP/lib/hadoop", Classes: []string{"TOP/lib/hadoop/lib", "TOP/lib/hadoop", "TOP/lib/hadoop-hdfs/lib", "TOP/lib/hadoop-hdfs", "TOP/more", "TOP/one.jar"},
				Jars: []string{"TOP/lib/hadoop/lib/a.jar", "TOP/lib/hadoop/c.jar", "TOP/lib/hadoop-hdfs/lib/e.jar", "TOP/lib/hadoop-hdfs/d.jar", "TOP/more/m.jar", "TOP/one.jar"},
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			top := files.Resolve(t.TempDir())
			layFiles(t, top, tt.files...)
			here := func(text string) string { return strings.ReplaceAll(text, "TOP", top) }
			env := map[string]string{}
			for name, value := range tt.env {
				env[name] = here(value)
			}
			got := FindFacts(here(tt.conf), Login{}, env)
			if got != nil {
				for _, text := range []*string{&got.Conf, &got.Home, &got.HDFSHome, &got.Java, &got.JVM, &got.Native} {
					*text = strings.ReplaceAll(strings.ReplaceAll(*text, top, "TOP"), "/"+jvmArch()+"/", "/ARCH/")
				}
				for i := range got.Classes {
					got.Classes[i] = strings.ReplaceAll(got.Classes[i], top, "TOP")
				}
				for i := range got.Jars {
					got.Jars[i] = strings.ReplaceAll(got.Jars[i], top, "TOP")
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error("-want +got\n" + diff)
			}
		})
	}
}

// Who names a keytab means it.
func TestTokensAreOfNoLogin(t *testing.T) {
	conf := t.TempDir()
	text := "<configuration><property><name>hadoop.security.authentication</name><value>kerberos</value></property></configuration>"
	if err := os.WriteFile(filepath.Join(conf, "core-site.xml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{plan.TokensVariable: "/tokens"}
	for login, want := range map[Login]bool{{}: true, {Keytab: "/k"}: false} {
		if got := FindFacts(conf, login, env); !got.Tickets || got.Tokens != want {
			t.Errorf("%+v: got tickets %t, tokens %t", login, got.Tickets, got.Tokens)
		}
	}
}

func TestSettingOf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hadoop-env.sh")
	for text, want := range map[string]string{
		"export JAVA_HOME=/a\n":                 "/a",
		"# export JAVA_HOME=/a\n":               "",
		"JAVA_HOME=\"/b\"\nexport HADOOP=x\n":   "/b",
		"export JAVA_HOME=${JAVA_HOME}\n":       "",
		"export JAVA_HOME=/a\n JAVA_HOME='/c'":  "/c",
		"export JAVA_HOME=$(dirname x)\nJAVA=1": "",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := settingOf(path, "JAVA_HOME"); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := settingOf(path+"x", "JAVA_HOME"); got != "" {
		t.Errorf("no file: got %q", got)
	}
}
