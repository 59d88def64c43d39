// Package script says how an app package's own scripts are run: what a command is told, what its end
// means, and when an instance that scripts run is up or dead.
//
// What enters are a plan and what was seen; what leaves are documents and decisions. The package
// starts no process and reads no file: the agent does, and asks here what follows.
//
// The forms are those of Slider's agent (slider-agent at 0.92: CustomServiceOrchestrator,
// PythonExecutor, ActionQueue). Two things are done otherwise: STATUS is told the whole configuration,
// and a count of failures that was once exceeded is forgotten with its window.
package script
