package frameworks_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/shim/frameworks"
	"github.com/muster-agent/muster/shim/plan"
)

// Every process is told of the host's Hadoop, whatever runs; what it is told otherwise stands, and search paths go on behind it.
func TestHadoop(t *testing.T) {
	whole := plan.Hadoop{
		Conf: "/etc/hadoop/conf", Home: "/opt/hadoop", Java: "/opt/java", JVM: "/opt/java/lib/server", Native: "/opt/hadoop/lib/native",
		User: "ada", Jars: []string{"/opt/hadoop/share/hadoop/common/a.jar", "/opt/hadoop/share/hadoop/hdfs/b.jar"},
	}
	secure := whole
	secure.Tickets, secure.Krb5, secure.HDFSHome = "/w/worker-0/app/run/krb5cc", "/lab/krb5.conf", "/opt/hdfs"
	secure.Tokens = "/w/worker-0/app/run/hadoop-tokens"
	var b strings.Builder
	for _, tt := range []struct {
		name   string
		hadoop *plan.Hadoop
		change func(*plan.Plan)
	}{
		{"no Hadoop", nil, func(*plan.Plan) {}},
		{"any process", &whole, func(*plan.Plan) {}},
		{"configuration alone", &plan.Hadoop{Conf: "/etc/hadoop/conf", User: "ada"}, func(*plan.Plan) {}},
		{"Kerberos, and the agent's own variables", &secure, func(p *plan.Plan) {
			p.Process.Inherited = map[string]string{
				"HADOOP_CONF_DIR": "/other", "KRB5CCNAME": "/tmp/krb5cc_0", "CLASSPATH": "/x.jar:/etc/hadoop/conf", "LD_LIBRARY_PATH": "/cuda", "JAVA_HOME": "/opt/java",
			}
		}},
		{"the process's own settings", &secure, func(p *plan.Plan) {
			p.Process.Env = map[string]string{
				"HADOOP_CONF_DIR": "/mine", "JAVA_HOME": "/jdk", "HADOOP_USER_NAME": "eve", "KRB5CCNAME": "/mine/cc", "CLASSPATH": "lib/*", "LD_LIBRARY_PATH": "{{checkpoint}}/lib",
			}
		}},
		{"a secret of that name", &secure, func(p *plan.Plan) { p.Process.Secrets = []string{"KRB5CCNAME", "CLASSPATH"} }},
		{"an image's own", &whole, func(p *plan.Plan) {
			p.Root.Kind = plan.RootImage
			p.Process.Inherited = map[string]string{"HADOOP_CONF_DIR": "/image/conf", "LD_LIBRARY_PATH": "/image/lib"}
		}},
		{"HBox", &whole, func(p *plan.Plan) {
			p.HBox = &plan.HBox{Type: "CAFFE", Output: "-1"}
			p.Process.Inherited = map[string]string{"CLASSPATH": "/x.jar", "LD_LIBRARY_PATH": "/cuda"}
		}},
		{"PAI", &whole, func(p *plan.Plan) {
			p.PAI = &plan.PAI{Version: "0.5", Job: "j", User: "pai", Env: map[string]string{"HADOOP_HOME": "/job"}}
			p.Process.Env = map[string]string{"HADOOP_HOME": "/job"}
		}},
	} {
		r := gang("worker:worker=1")
		p := planOf(r.Rows[0])
		p.Framework, p.Hadoop = "none", tt.hadoop
		tt.change(&p)
		env, _ := frameworks.Env(p, r)
		fmt.Fprintf(&b, "== %s\n", tt.name)
		for _, name := range slices.Sorted(maps.Keys(env)) {
			if strings.HasPrefix(name, "HADOOP_") || slices.Contains([]string{"CLASSPATH", "LD_LIBRARY_PATH", "JAVA_HOME", "KRB5CCNAME", "KRB5_CONFIG", "LIBHDFS_OPTS"}, name) {
				fmt.Fprintf(&b, "  %s=%s\n", name, env[name])
			}
		}
	}
	const golden = "testdata/hadoop.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")); diff != "" {
		t.Errorf("%s (-got +want):\n%s", golden, diff)
	}
}
