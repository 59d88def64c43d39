package formats

import (
	_ "embed"
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

// Splits are the words that have an InputFormat list its splits: a line for each, which Read takes.
func Splits(in *plan.Inputs) []string {
	words := append([]string{"splits", plan.ClassName(in.Format), strconv.Itoa(max(in.Splits, 1))}, properties(in)...)
	words = append(words, "--")
	for _, one := range in.From {
		words = append(words, one.From...)
	}
	return words
}

// Read are the words that have it read the splits of its stdin.
func Read(in *plan.Inputs) []string {
	return append([]string{"read", plan.ClassName(in.Format)}, properties(in)...)
}

// Write are the words that have an OutputFormat write the lines of its stdin below a URL, and commit them.
func Write(out *plan.Outputs, url string) []string {
	return append([]string{"write", plan.ClassName(out.Format), url}, pairs(out.Conf)...)
}

// properties are what a definition says to Hadoop's own formats, which a user's may be made of, and to the user's.
func properties(in *plan.Inputs) []string {
	var all []string
	if in.Lines > 0 {
		all = append(all, "mapreduce.input.lineinputformat.linespermap="+strconv.Itoa(in.Lines))
	}
	if in.Separator != "" {
		all = append(all, "mapreduce.input.keyvaluelinerecordreader.key.value.separator="+in.Separator)
	}
	return append(all, pairs(in.Conf)...)
}

func pairs(conf map[string]string) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(conf)) {
		all = append(all, name+"="+conf[name])
	}
	return all
}

// Command is the program with its words, as a process with this environment would run it. The jars of the folder where
// it starts are found as HBox's are, before Hadoop's own unless CLASSPATH has them at another place.
func Command(env map[string]string, words []string) []string {
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
	if krb5 := env["KRB5_CONFIG"]; krb5 != "" { // Java reads no such variable
		argv = append(argv, "-Djava.security.krb5.conf="+krb5)
	}
	return append(append(argv, "-cp", strings.Join(append(classes, env["CLASSPATH"]), ":"), name), words...)
}

// The exit codes of the program beside 0.
const (
	wrong  = 65
	failed = 69
)

// Failure is why the program has ended with a code other than 0, by the end of its stderr. A class that cannot be used
// is the definition's fault, which another attempt would meet again; data that cannot be read may be there later.
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
