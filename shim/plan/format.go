package plan

import (
	"regexp"
	"slices"
	"strings"
)

// RecordForm is how the files of a stream are split into records.
type RecordForm string

// The forms of records.
const (
	RecordLines    RecordForm = "lines"    // each line
	RecordValues   RecordForm = "values"   // what follows the separator in each line
	RecordNLines   RecordForm = "n-lines"  // each line; a split has a fixed number of them
	RecordWhole    RecordForm = "whole"    // each file
	RecordSequence RecordForm = "sequence" // each value of a SequenceFile
)

// The packages of Hadoop's formats: those of the old interface, which HBox uses, and of the new one.
const (
	oldFormats = "org.apache.hadoop.mapred"
	newInput   = "org.apache.hadoop.mapreduce.lib.input"
	newOutput  = "org.apache.hadoop.mapreduce.lib.output"
)

// anyPackage stands for every package.
const anyPackage = "*"

// format is a class of Hadoop or HBox, by its name and its packages.
type format[T any] struct {
	class    string
	packages []string
	is       T
}

// inputFormats are the supported InputFormats of streams. WholeFileInputFormat is in no package of Hadoop's: many users
// write a class of that name.
var inputFormats = [...]format[RecordForm]{
	{"TextInputFormat", []string{oldFormats, newInput}, RecordLines},
	{"KeyValueTextInputFormat", []string{oldFormats, newInput}, RecordValues},
	{"NLineInputFormat", []string{oldFormats + ".lib", newInput}, RecordNLines},
	{"WholeFileInputFormat", []string{anyPackage}, RecordWhole},
	{"SequenceFileInputFormat", []string{oldFormats, newInput}, RecordSequence},
	{"SequenceFileAsTextInputFormat", []string{oldFormats, newInput}, RecordSequence},
}

// outputFormats are the supported OutputFormats of streams, and whether they make parts of a limited size.
var outputFormats = [...]format[bool]{
	{"TextOutputFormat", []string{oldFormats, newOutput}, false},
	{"TextMultiOutputFormat", []string{"net.qihoo.hbox.common", "net.qihoo.xlearning.common"}, true},
}

// InputForm is how an InputFormat splits records: by its class, with its package or without. No class means lines.
func InputForm(class string) (RecordForm, bool) { return find(inputFormats[:], class, RecordLines) }

// OutputParts tells whether an OutputFormat makes parts of a limited size. No class makes one file.
func OutputParts(class string) (parts, ok bool) { return find(outputFormats[:], class, false) }

// ClassName is a class without the suffix that it has in HBox's manual.
func ClassName(class string) string { return strings.TrimSuffix(class, ".class") }

// classForm is the name of a class of Java's with its package.
var classForm = regexp.MustCompile(`^([A-Za-z_$][\w$]*\.)+[A-Za-z_$][\w$]*$`)

// InputByClass tells whether an InputFormat is none that muster reads itself, and may be a class that Java runs.
func InputByClass(class string) bool {
	_, own := InputForm(class)
	return !own && classForm.MatchString(ClassName(class))
}

// OutputByClass tells the same of an OutputFormat.
func OutputByClass(class string) bool {
	_, own := OutputParts(class)
	return !own && classForm.MatchString(ClassName(class))
}

func find[T any](all []format[T], class string, fallback T) (T, bool) {
	class = ClassName(class)
	if class == "" {
		return fallback, true
	}
	dot := strings.LastIndexByte(class, '.')
	name, home := class[dot+1:], class[:max(dot, 0)]
	for _, f := range all {
		if f.class == name && (dot < 0 || slices.Contains(f.packages, home) ||
			slices.Contains(f.packages, anyPackage)) {
			return f.is, true
		}
	}
	return fallback, false
}

// named lists the classes for a message.
func named[T any](all []format[T]) string {
	names := make([]string, len(all))
	for i, f := range all {
		names[i] = f.class
	}
	return strings.Join(names, ", ")
}
