package formats

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/store"
)

// Words are read by every user of the host: properties are none of them.
func TestWords(t *testing.T) {
	in := &plan.Inputs{Format: "lab.A.class", From: []plan.Input{{From: []string{"hdfs://h/a", "hdfs://h/{b,c}"}}, {From: []string{"x"}}}}
	rich := *in
	rich.Splits, rich.Lines, rich.Separator, rich.Conf = 4, 2, "\t", map[string]string{"x.secret.key": "hunter2"}
	const secret = "x.secret.key=hunter2"
	const lines, separator = "mapreduce.input.lineinputformat.linespermap=2", "mapreduce.input.keyvaluelinerecordreader.key.value.separator=\t"
	splits, none := Splits(in)
	many, given := Splits(&rich)
	read, same := Read(&rich)
	write, two := Write(&plan.Outputs{Format: "lab.B", Conf: map[string]string{"b": "=", "a": "1\nc"}}, "hdfs://h/o")
	for _, tt := range []struct {
		words []string
		stdin string
		want  string
		lines []string
	}{
		{splits, none, "splits lab.A 1 hdfs://h/a hdfs://h/{b,c} x", nil},
		{many, given, "splits lab.A 4 hdfs://h/a hdfs://h/{b,c} x", []string{separator, lines, secret}},
		{read, same, "read lab.A", []string{separator, lines, secret}},
		{write, two, "write lab.B hdfs://h/o", []string{"a=1\nc", "b=="}},
	} {
		text, ended := strings.CutSuffix(tt.stdin, "\n")
		var got []string
		for line := range strings.Lines(text) {
			plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(line))
			if err != nil {
				t.Error(err)
			}
			got = append(got, string(plain))
		}
		if words := strings.Join(tt.words, " "); words != tt.want || !slices.Equal(got, tt.lines) || !ended {
			t.Errorf("got %s with %q, want %s with %q", words, got, tt.want, tt.lines)
		}
	}
}

func TestCommand(t *testing.T) {
	for _, tt := range []struct {
		env    map[string]string
		memory int
		want   string
	}{
		{map[string]string{"CLASSPATH": "/conf:/h.jar"}, 0, "java -XX:+UseSerialGC -XX:-UsePerfData -cp app/java:./*:/conf:/h.jar MusterFormats read a.B"},
		{
			map[string]string{"CLASSPATH": "/h.jar:./*", "JAVA_HOME": "/j", "KRB5_CONFIG": "/k"},
			512,
			"/j/bin/java -XX:+UseSerialGC -XX:-UsePerfData -Xmx256m -Djava.security.krb5.conf=/k -cp app/java:/h.jar:./* MusterFormats read a.B",
		},
		{nil, 100, "java -XX:+UseSerialGC -XX:-UsePerfData -Xmx64m -cp app/java:./*: MusterFormats read a.B"},
	} {
		if got := strings.Join(Command(tt.env, tt.memory, []string{"read", "a.B"}), " "); got != tt.want {
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
		{70, "muster: java.lang.NullPointerException\n", "java.lang.NullPointerException; agent.log has the place in the class", registry.ClassData, false},
		{
			70, "muster: java.lang.OutOfMemoryError: Java heap space\n", "java.lang.OutOfMemoryError: Java heap space; " +
				"Java has half of the instance's memory, of which more would do", registry.ClassData, false,
		},
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
