package scripts_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// part is a component of a small package.
type part struct {
	name      string // default: worker
	instances int    // default: 1
	script    string // the methods of its class, in Python; empty: it has commands
	commands  []command
	timeout   int // of one command, in seconds
	exports   string
	config    settings
}

// command is one of metainfo 2.1.
type command struct{ name, exec string }

// small is a package that a test makes.
type small struct {
	parts  []part
	config settings // global
	more   object   // of metainfo's application
}

type object = map[string]any

// prelude is what the scripts of small packages have in common. leave is how Slider's packages leave a daemon behind.
const prelude = `import os, signal, subprocess, sys, time
from resource_management import *

def pid_path():
    return Script.get_config()['configurations']['global']['pid_file']

def leave(command):
    Execute(command, wait_for_finish=False, pid_file=pid_path())

def write_pid(pid):
    with open(pid_path(), "w") as f:
        f.write(str(pid))

class Worker(Script):
    def install(self, env):
        pass
`

// epilogue runs the command.
const epilogue = `

if __name__ == "__main__":
    Worker().execute()
`

// newSmall lays a package down. Nothing starts again unless it says so, and STATUS is asked often.
func newSmall(t testing.TB, as *syscall.Credential, s small) *job {
	t.Helper()
	j := newJob(t, as)
	const schema = "http://example.org/specification/v2.0.0"
	var components []object
	counts, configs := object{}, object{}
	for i, p := range s.parts {
		if p.name == "" {
			p.name = "worker"
		}
		c := object{"name": p.name}
		if p.exports != "" {
			c["compExports"] = p.exports
		}
		if p.script != "" {
			file := "scripts/" + p.name + ".py"
			c["commandScript"] = object{"script": file, "scriptType": "PYTHON", "timeout": p.timeout}
			j.write("package/"+file, prelude+p.script+epilogue)
		}
		var commands []object
		for _, k := range p.commands {
			commands = append(commands, object{"name": k.name, "exec": k.exec, "type": "SHELL"})
		}
		if len(commands) > 0 {
			c["commands"] = commands
		}
		components = append(components, c)
		configs[p.name] = object{}
		if p.config != nil {
			configs[p.name] = p.config
		}
		counts[p.name] = settings{"yarn.role.priority": strconv.Itoa(i + 1), "yarn.component.instances": strconv.Itoa(max(1, p.instances)), "yarn.memory": "64"}
	}
	global := settings{"muster.restart": "never", "muster.restart.backoff": "0.05", "muster.status.interval": "0.2"}
	maps.Copy(global, s.config)
	application := object{"name": "small", "version": "1", "components": components}
	maps.Copy(application, s.more)
	j.encode("metainfo.json", object{"schemaVersion": "2.1", "application": application})
	j.encode("appConfig.json", object{"schema": schema, "global": global, "components": configs})
	j.encode("resources.json", object{"schema": schema, "components": counts})
	return j
}

// worker is a job of one component, of these methods.
func worker(t testing.TB, methods string, config settings) *job {
	t.Helper()
	return newSmall(t, nil, small{parts: []part{{script: methods, timeout: 20}}, config: config})
}

func (j *job) encode(name string, value any) {
	j.t.Helper()
	text, err := json.MarshalIndent(value, "", "  ")
	j.must(err)
	j.write(name, string(text))
}

// write lays a file into the definition.
func (j *job) write(name, text string) {
	j.t.Helper()
	path := filepath.Join(j.dir, filepath.FromSlash(name))
	j.must(os.MkdirAll(filepath.Dir(path), 0o755))
	j.must(os.WriteFile(path, []byte(strings.TrimPrefix(text, "\n")), 0o644))
}
