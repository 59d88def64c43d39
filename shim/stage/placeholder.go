package stage

import (
	"encoding/json"
)

// What a process is told of its files by, as HBox names it.
const (
	ListVariable = "INPUT_FILE_LIST"
	ListFile     = "inputFileList.txt"
)

// mostEnvironment is how long HBox lets the variables be together, as text (hbox.env.maxlength).
const mostEnvironment = 120_240

// Placeholder is the JSON that a process is told its files by: {alias: [path…]}, on one line.
func Placeholder(files map[string][]File) string {
	paths := map[string][]string{}
	for alias, all := range files {
		paths[alias] = []string{}
		for _, f := range all {
			paths[alias] = append(paths[alias], f.Path)
		}
	}
	text, err := json.Marshal(paths)
	if err != nil {
		panic("stage: encode the list of inputs: " + err.Error())
	}
	return string(text)
}

// TooLong tells whether variables, written as Java prints a list of NAME=VALUE, are longer than HBox lets them be.
func TooLong(env map[string]string) bool {
	length := len("[]")
	for name, value := range env {
		length += len(name) + len("=") + len(value) + len(", ")
	}
	return length-len(", ") > mostEnvironment
}
