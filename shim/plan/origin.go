package plan

import "strings"

// keysOf names, for a part of the plan, the configuration or resource keys that decide it.
func keysOf() map[string][]string {
	return map[string][]string{
		"/limits/memory_mb":     {"yarn.memory", "muster.memory"},
		"/limits/vcores":        {"yarn.vcores"},
		"/limits/cpu_hard":      {"muster.cpu.hard"},
		"/limits/swap_mb":       {"muster.memory.swap"},
		"/limits/pids":          {"muster.pids"},
		"/limits/shm_mb":        {"muster.shm"},
		"/limits/gpus":          {"yarn.io/gpu"},
		"/limits/gpu_type":      {"muster.gpu.type"},
		"/limits/gpu_memory_mb": {"muster.gpu.memory"},
		"/who/role":             {"muster.role"},
		"/restart/scope":        {"muster.restart"},
		"/restart/budget":       {"muster.restart.budget", "yarn.container.failure.threshold"},
		"/restart/window":       {"muster.restart.window", "yarn.container.failure.window.minutes", "yarn.container.failure.window.hours", "yarn.container.failure.window.days"},
		"/complete/min_failed":  {"muster.complete.minFailed"},
		"/complete/min_succeeded": {
			"muster.complete.minSucceeded",
		},
		"/stop/signal":        {"muster.stop.signal"},
		"/stop/grace":         {"muster.stop.grace"},
		"/checkpoint/dir":     {"muster.checkpoint.dir", "site.global.user.checkpoint.dir", "site.global.user.checkpoint.prefix"},
		"/checkpoint/pattern": {"muster.checkpoint.pattern"},
		"/barrier/timeout":    {"muster.barrier.timeout"},
		"/process/argv":       {"muster.command", "commands", "commandScript", "site.global.user.scripts.entry"},
		"/process/resume_args": {
			"muster.resume.args",
		},
		"/framework": {"muster.framework"},
	}
}

// origins says where each part of the plan that somebody chose came from, by its JSON pointer: a
// file and pointer of the definition, or the launcher's variable. What is not listed is a default.
func (b *builder) origins() map[string]string {
	out := map[string]string{}
	for part, keys := range keysOf() {
		for _, key := range keys {
			if from := b.origin(key); from != "" {
				out[part] = from
				break
			}
		}
	}
	if _, ok := out["/framework"]; !ok && b.app.Settings.FrameworkWhy != "" {
		out["/framework"] = b.app.Settings.FrameworkWhy
	}
	for what, from := range b.req.Origins {
		out["/allocation/"+what] = from
	}
	return out
}

// origin is the component's own answer, else the global one.
func (b *builder) origin(key string) string {
	if from := b.app.Origins[b.req.Component+"."+key]; from != "" {
		return from
	}
	if from := b.app.Origins[key]; from != "" || !strings.HasPrefix(key, "site.") {
		return from
	}
	if p, ok := keyPlace(b.app, b.position, key); ok {
		return p.String()
	}
	return ""
}
