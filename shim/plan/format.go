package plan

import (
	"slices"
	"strings"
)

// RecordForm is how files of a stream are cut into records.
type RecordForm string

// The forms of records.
const (
	RecordLines    RecordForm = "lines"    // each line
	RecordValues   RecordForm = "values"   // what follows the separator in each line
	RecordNLines   RecordForm = "n-lines"  // each line; so many are a split
	RecordWhole    RecordForm = "whole"    // each file
	RecordSequence RecordForm = "sequence" // each value of a SequenceFile
)

// The packages that Hadoop keeps its formats in: of the old interface, which HBox takes its classes from, and of the
// new.
const (
	oldFormats = "org.apache.hadoop.mapred"
	newInput   = "org.apache.hadoop.mapreduce.lib.input"
	newOutput  = "org.apache.hadoop.mapreduce.lib.output"
)

// anyPackage stands for every package.
const anyPackage = "*"

// format is a class of Hadoop, or of HBox, by its name without and its packages.
type format[T any] struct {
	class    string
	packages []string
	is       T
}

// inputFormats are the InputFormats that a stream can be read by. WholeFileInputFormat is in no package of Hadoop's: it
// is what users call the one that everybody writes.
var inputFormats = [...]format[RecordForm]{
	{"TextInputFormat", []string{oldFormats, newInput}, RecordLines},
	{"KeyValueTextInputFormat", []string{oldFormats, newInput}, RecordValues},
	{"NLineInputFormat", []string{oldFormats + ".lib", newInput}, RecordNLines},
	{"WholeFileInputFormat", []string{anyPackage}, RecordWhole},
	{"SequenceFileInputFormat", []string{oldFormats, newInput}, RecordSequence},
	{"SequenceFileAsTextInputFormat", []string{oldFormats, newInput}, RecordSequence},
}

// outputFormats are the OutputFormats that a stream can be left by, and whether they make parts of a bounded size.
var outputFormats = [...]format[bool]{
	{"TextOutputFormat", []string{oldFormats, newOutput}, false},
	{"TextMultiOutputFormat", []string{"net.qihoo.hbox.common", "net.qihoo.xlearning.common"}, true},
}

// InputForm is how an InputFormat cuts records: by its class, with its package or without. None is lines.
func InputForm(class string) (RecordForm, bool) { return find(inputFormats[:], class, RecordLines) }

// OutputParts tells whether an OutputFormat makes parts of a bounded size. None makes one file.
func OutputParts(class string) (parts, ok bool) { return find(outputFormats[:], class, false) }

func find[T any](all []format[T], class string, fallback T) (T, bool) {
	class = strings.TrimSuffix(class, ".class") // HBox's manual writes so
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

// named are the classes as a message names them.
func named[T any](all []format[T]) string {
	names := make([]string, len(all))
	for i, f := range all {
		names[i] = f.class
	}
	return strings.Join(names, ", ")
}
