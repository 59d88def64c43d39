package hbox

import (
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// kind is how HBox runs an app type. A type that is not in the table is a job of single processes.
type kind struct {
	name      string
	framework string // of the distributed mode; empty: there is none
	ps        bool   // it has parameter servers
	strict    bool   // of the distributed mode: any failed container fails the job
	allReduce bool   // any failed container stops the job, because the others cannot continue without it
	keepsPS   bool   // the outputs of its parameter servers are uploaded
}

// kinds are the types that differ from a single process.
var kinds = [...]kind{
	{name: "TENSORFLOW", framework: "tensorflow", ps: true, strict: true, keepsPS: true},
	{name: "TENSOR2TENSOR", framework: "tensor2tensor", ps: true, strict: true, keepsPS: true},
	{name: "MXNET", framework: "mxnet", ps: true, strict: true},
	{name: "XDL", framework: "xdl", ps: true, strict: true, keepsPS: true},
	{name: "DISTLIGHTLDA", framework: "lightlda", ps: true, strict: true, keepsPS: true},
	{name: "XFLOW", framework: "xflow", ps: true, allReduce: true},
	{name: "DISTXGBOOST", framework: "xgboost", allReduce: true},
	{name: "DISTLIGHTGBM", framework: "lightgbm", allReduce: true},
	{name: "DISTTORCH", framework: "pytorch"},
	{name: "PYTORCH", framework: "pytorch"},
	{name: "MPI", framework: "mpi", allReduce: true},
	{name: "TENSORNET", framework: "mpi", allReduce: true},
	{name: "HOROVOD", framework: "horovod", allReduce: true},
	{name: "VPC"},
	{name: "DIGITS"},
	{name: "HBOX"},
	{name: "CAFFE"},
	{name: "XGBOOST"},
	{name: "KERAS"},
	{name: "THEANO"},
	{name: "LIGHTGBM"},
	{name: "LIGHTLDA"},
	{name: "SKLEARN"},
}

func kindNamed(name string) (kind, bool) {
	i := slices.IndexFunc(kinds[:], func(k kind) bool { return k.name == name })
	if i < 0 {
		return kind{name: name}, false
	}
	return kinds[i], true
}

// kind is the type of --app-type. HBox accepts any word: a misspelt type would run as single processes.
func (l *line) kind() kind {
	v, ok := l.value("app-type")
	name := strings.ToUpper(strings.TrimSpace(v.Text))
	if !ok || name == "" {
		name = "HBOX"
	}
	if name == "XFOW" { // the spelling in HBox's wiki
		l.warn(v.Place, appdef.Quote(v.Text), "XFLOW", "it is read as that")
		name = "XFLOW"
	}
	k, known := kindNamed(name)
	if !known {
		var names []string
		for _, other := range kinds {
			names = append(names, other.name)
		}
		if hint := appdef.DidYouMean(name, names); hint != "" {
			l.warn(v.Place, "the app type "+appdef.Quote(v.Text), "a type of HBox",
				hint+" It runs as single processes that know of no other")
		}
	}
	return k
}

func (k kind) tensorflow() bool { return k.name == "TENSORFLOW" || k.name == "TENSOR2TENSOR" }

// mpi tells whether HBox starts the type with Open MPI: its processes count from 1.
func (k kind) mpi() bool { return k.framework == "mpi" || k.framework == "horovod" }

// lives tells whether the type has no command and waits until its duration is over.
func (k kind) lives() bool { return k.name == "VPC" || k.name == "DIGITS" }

// alone tells whether that many processes know nothing of each other; strategy is hbox.tf.distribution.strategy.
func (k kind) alone(workers, servers int, strategy bool) bool {
	switch k.name {
	case "TENSORFLOW", "TENSOR2TENSOR":
		if strategy {
			return workers+servers == 1
		}
		return servers == 0
	case "MXNET", "XDL":
		return servers == 0
	case "PYTORCH":
		return workers == 1
	}
	return k.framework == ""
}
