package formats

import (
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/store"
)

func TestWords(t *testing.T) {
	in := &plan.Inputs{Format: "lab.A.class", From: []plan.Input{{From: []string{"hdfs://h/a", "hdfs://h/{b,c}"}}, {From: []string{"x"}}}}
	rich := *in
	rich.Splits, rich.Lines, rich.Separator = 4, 2, "\t"
	const lines, separator = "mapreduce.input.lineinputformat.linespermap=2", "mapreduce.input.keyvaluelinerecordreader.key.value.separator=\t"
	for _, tt := range []struct{ got, want []string }{
		{Splits(in), []string{"splits", "lab.A", "1", "--", "hdfs://h/a", "hdfs://h/{b,c}", "x"}},
		{Splits(&rich), []string{"splits", "lab.A", "4", lines, separator, "--", "hdfs://h/a", "hdfs://h/{b,c}", "x"}},
		{Read(&rich), []string{"read", "lab.A", lines, separator}},
		{Write(&plan.Outputs{Format: "lab.B", Conf: map[string]string{"b": "=", "a": "1"}}, "hdfs://h/o"), []string{"write", "lab.B", "hdfs://h/o", "a=1", "b=="}},
	} {
		if !slices.Equal(tt.got, tt.want) {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func TestCommand(t *testing.T) {
	for _, tt := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"CLASSPATH": "/conf:/h.jar"}, "java -XX:+UseSerialGC -XX:-UsePerfData -cp app/java:./*:/conf:/h.jar MusterFormats read a.B"},
		{
			map[string]string{"CLASSPATH": "/h.jar:./*", "JAVA_HOME": "/j", "KRB5_CONFIG": "/k"},
			"/j/bin/java -XX:+UseSerialGC -XX:-UsePerfData -Djava.security.krb5.conf=/k -cp app/java:/h.jar:./* MusterFormats read a.B",
		},
	} {
		if got := strings.Join(Command(tt.env, []string{"read", "a.B"}), " "); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

func TestFailure(t *testing.T) {
	for _, tt := range []struct {
		code   int
		stderr string
		want   string
		class  registry.Class
		passes bool
	}{
		{
			65, "noise\nmuster: no class a.B in c.jar or Hadoop's CLASSPATH\n", "no class a.B in c.jar or Hadoop's CLASSPATH; --jars brings the jar that has it, and what that needs",
			registry.ClassDefinition, false,
		},
		{69, "java.io.IOException: x\n\tat y\nmuster: java.io.IOException: x\n", "java.io.IOException: x", "", true},
		{
			1, "Error: Unable to initialize main class MusterFormats\nCaused by: java.lang.NoClassDefFoundError: org/apache/hadoop/mapred/InputFormat\n",
			"CLASSPATH has not all of Hadoop's jars: Caused by: java.lang.NoClassDefFoundError: org/apache/hadoop/mapred/InputFormat; want those of its mapreduce folder too, " +
				"below HADOOP_HOME or in HADOOP_CLASSPATH", registry.ClassDefinition, false,
		},
		{3, "one\ntwo\n", "the Java program ended with 3: two", "", false},
	} {
		err := Failure(tt.code, tt.stderr)
		if err.Error() != tt.want || fault.ClassOf(err) != tt.class || store.Transient(err) != tt.passes {
			t.Errorf("got %q, class %s, transient %t, want %+v", err, fault.ClassOf(err), store.Transient(err), tt)
		}
	}
}

// The class is one that Java 8 loads.
func TestClass(t *testing.T) {
	if !strings.HasPrefix(class, "\xca\xfe\xba\xbe\x00\x00\x00\x34") {
		t.Errorf("it begins with %q", class[:8])
	}
	start := plan.Start{Files: map[string]string{}}
	if Lay(&start); start.Files["app/java/MusterFormats.class"] != class {
		t.Errorf("laid %d files", len(start.Files))
	}
}
