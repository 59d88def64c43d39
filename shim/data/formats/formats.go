package formats

import (
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/store"
)

//go:embed java/MusterFormats.class
var class string

const (
	// folder of the class, where the process starts.
	folder = "app/java"
	name   = "MusterFormats"
)

// Lay adds the class to the files of a start.
func Lay(start *plan.Start) { start.Files[path.Join(folder, name+".class")] = class }

// Splits are the words that have an InputFormat list its splits, a line for each, which Read takes; and what is given
// to its stdin. Properties go there, since words are read by every user of the host.
func Splits(in *plan.Inputs) (words []string, stdin string) {
	words = []string{"splits", plan.ClassName(in.Format), strconv.Itoa(max(in.Splits, 1))}
	for _, one := range in.From {
		words = append(words, one.From...)
	}
	return words, properties(in)
}

// Read are the words that have it read splits, and what stands before those on its stdin.
func Read(in *plan.Inputs) (words []string, stdin string) {
	return []string{"read", plan.ClassName(in.Format)}, properties(in)
}

// Write are the words that have an OutputFormat write lines below a URL, and commit them; and what stands before the
// lines on its stdin.
func Write(out *plan.Outputs, url string) (words []string, stdin string) {
	return []string{"write", plan.ClassName(out.Format), url}, given(out.Conf)
}

// properties are what a definition says to Hadoop's own formats, which a user's may be made of, and to the user's.
func properties(in *plan.Inputs) string {
	all := map[string]string{}
	if in.Lines > 0 {
		all["mapreduce.input.lineinputformat.linespermap"] = strconv.Itoa(in.Lines)
	}
	if in.Separator != "" {
		all["mapreduce.input.keyvaluelinerecordreader.key.value.separator"] = in.Separator
	}
	maps.Copy(all, in.Conf)
	return given(all)
}

// given are properties as the program reads them: values may have any character.
func given(conf map[string]string) string {
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(conf)) {
		all.WriteString(base64.StdEncoding.EncodeToString([]byte(name+"="+conf[name])) + "\n")
	}
	return all.String() + "\n"
}

const leastHeapMB = 64

// Command is the program with its words, as a process with this environment would run it. The jars of the folder where
// it starts are found as HBox's are, before Hadoop's own unless CLASSPATH has them at another place. Java gets half of
// the instance's memory, if that has a limit: without one of its own it would go by the host's.
func Command(env map[string]string, memoryMB int, words []string) []string {
	java := "java"
	if home := env["JAVA_HOME"]; home != "" {
		java = path.Join(home, "bin/java")
	}
	classes := []string{folder}
	const jars = "./*"
	if !slices.Contains(strings.Split(env["CLASSPATH"], ":"), jars) {
		classes = append(classes, jars)
	}
	argv := []string{java, "-XX:+UseSerialGC", "-XX:-UsePerfData"}
	if memoryMB > 0 {
		argv = append(argv, "-Xmx"+strconv.Itoa(max(memoryMB/2, leastHeapMB))+"m")
	}
	if krb5 := env["KRB5_CONFIG"]; krb5 != "" { // Java reads no such variable
		argv = append(argv, "-Djava.security.krb5.conf="+krb5)
	}
	return append(append(argv, "-cp", strings.Join(append(classes, env["CLASSPATH"]), ":"), name), words...)
}

// The exit codes of the program beside 0.
const (
	wrong  = 65
	failed = 69
	broken = 70
)

// Failure is why the program has ended with a code other than 0, by the end of its stderr. A class that cannot be used
// is the definition's fault, which another attempt would meet again, as it would one that fails by itself; data that
// cannot be read may be there later.
func Failure(code int, stderr string) error {
	text := ""
	for line := range strings.Lines(stderr) {
		if why, ok := strings.CutPrefix(line, "muster: "); ok {
			text = strings.TrimSpace(why)
		}
	}
	switch {
	case code == wrong && text != "":
		return fault.Definition(errors.New(text + "; --jars brings the jar that has it, and what that needs"))
	case code == failed && text != "":
		return passing(text)
	case code == broken && strings.Contains(text, "OutOfMemoryError"):
		return fault.Data(errors.New(text + "; Java has half of the instance's memory, of which more would do"))
	case code == broken && text != "":
		return fault.Data(errors.New(text + "; agent.log has the place in the class"))
	case strings.Contains(stderr, "NoClassDefFoundError: org/apache/hadoop/"):
		return fault.Definition(fmt.Errorf("CLASSPATH has not all of Hadoop's jars: %s; want those of its mapreduce "+
			"folder too, below HADOOP_HOME or in HADOOP_CLASSPATH", last(stderr)))
	}
	return fmt.Errorf("the Java program ended with %d: %s", code, last(stderr))
}

// passing is a failure that another attempt may not meet: a cluster that is away, a file that was being written.
type passing string

func (p passing) Error() string { return string(p) }

func (passing) Is(target error) bool { return target == store.ErrUnreachable }

// last is the last line that says something.
func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
