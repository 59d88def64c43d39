package data

import (
	"encoding/json"

	"github.com/muster-agent/muster/shim/data/transfer"
)

// What a process is told of its files by, as HBox names it.
const (
	ListVariable = "INPUT_FILE_LIST"
	ListFile     = "inputFileList.txt"
)

// mostEnvironment is how long HBox lets the variables be together, as text, unless hbox.env.maxlength says otherwise.
const mostEnvironment = 120_240

// Placeholder is the JSON that a process is told its files by: {alias: [path…]}, on one line. Files of this machine
// are told by their paths, others by their URLs.
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
// MostEnvironment.
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
