package data

import (
	"encoding/json"

	"github.com/muster-agent/muster/shim/data/transfer"
)

// How a process is told its files, as HBox names it.
const (
	ListVariable = "INPUT_FILE_LIST"
	ListFile     = "inputFileList.txt"
)

// mostEnvironment is the limit of HBox for all variables together, as text, unless hbox.env.maxlength is set.
const mostEnvironment = 120_240

// Placeholder is the JSON that tells a process its files: {alias: [path…]}, on one line. Files of this host have
// their paths, others their URLs.
func Placeholder(files map[string][]transfer.File) string {
	names := map[string][]string{}
	for alias, all := range files {
		names[alias] = []string{}
		for _, f := range all {
			names[alias] = append(names[alias], f.Name())
		}
	}
	text, err := json.Marshal(names)
	if err != nil {
		panic("stage: encode the list of inputs: " + err.Error())
	}
	return string(text)
}

// TooLong tells whether variables, written as Java prints a list of NAME=VALUE, are longer than most; 0:
// mostEnvironment.
func TooLong(env map[string]string, most int) bool {
	if most <= 0 {
		most = mostEnvironment
	}
	length := len("[]")
	for name, value := range env {
		length += len(name) + len("=") + len(value) + len(", ")
	}
	return length-len(", ") > most
}
