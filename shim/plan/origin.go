package plan

import "strings"

// keysOf names, for a part of the plan, the keys of configuration or resources that decide it.
func keysOf() map[string][]string {
	return map[string][]string{
		"/limits/memory_mb":     {"yarn.memory"},
		"/limits/vcores":        {"yarn.vcores"},
		"/limits/cpu_hard":      {"muster.cpu.hard"},
		"/limits/swap_mb":       {"muster.memory.swap"},
		"/limits/high_mb":       {"muster.memory.high"},
		"/limits/autoscale":     {"muster.memory.autoscale"},
		"/limits/autoscale_at":  {"muster.memory.autoscale.at"},
		"/limits/rdma":          {"muster.rdma"},
		"/root/image":           {"muster.image"},
		"/root/kind":            {"muster.root"},
		"/process/user":         {"muster.user"},
		"/limits/pids":          {"muster.pids"},
		"/limits/shm_mb":        {"muster.shm"},
		"/limits/storage_gb":    {"muster.storage"},
		"/limits/gpus":          {"yarn.io/gpu"},
		"/limits/gpu_type":      {"muster.gpu.type"},
		"/limits/gpu_memory_mb": {"muster.gpu.memory"},
		"/who/role":             {"muster.role"},
		"/restart/scope":        {"muster.restart"},
		"/restart/budget":       {"muster.restart.budget", "yarn.container.failure.threshold"},
		"/restart/window": {
			"muster.restart.window", "yarn.container.failure.window.minutes",
			"yarn.container.failure.window.hours", "yarn.container.failure.window.days",
			"yarn.container.failure.window.seconds",
		},
		"/complete/min_failed": {"muster.complete.minFailed"},
		"/complete/min_succeeded": {
			"muster.complete.minSucceeded",
		},
		"/restart/backoff_min": {"muster.restart.backoff"},
		"/restart/backoff_max": {"muster.restart.backoff"},
		"/restart/refill":      {"muster.restart.refill"},
		"/timeout":             {"muster.timeout"},
		"/duration":            {"muster.duration"},
		"/silence":             {"muster.silence"},
		"/stop/signal":         {"muster.stop.signal"},
		"/stop/grace":          {"muster.stop.grace"},
		"/checkpoint/dir": {
			"muster.checkpoint.dir", "site.global.user.checkpoint.dir",
			"site.global.user.checkpoint.prefix",
		},
		"/checkpoint/pattern":     {"muster.checkpoint.pattern"},
		"/checkpoint/whole":       {"muster.checkpoint.whole"},
		"/checkpoint/marker":      {"muster.checkpoint.marker"},
		"/checkpoint/sync":        {"muster.checkpoint.sync"},
		"/checkpoint/keep":        {"muster.checkpoint.keep"},
		"/checkpoint/signal":      {"muster.checkpoint.signal"},
		"/checkpoint/ranks":       {"muster.checkpoint.ranks"},
		"/barrier/timeout":        {"muster.barrier.timeout"},
		"/script/status_interval": {"muster.status.interval"},
		"/script/up":              {"muster.up"},
		"/process/argv": {
			"muster.command", "muster.start", "commands", "commandScript",
			"site.global.user.scripts.entry",
		},
		"/process/resume_args": {
			"muster.resume.args",
		},
		"/framework":         {"muster.framework"},
		"/discovery/address": {addressKey},
		"/inputs/strategy":   {"muster.inputs.strategy"},
		"/outputs/strategy":  {"muster.outputs.strategy"},
		"/outputs/failed":    {"muster.outputs.failed"},
		"/outputs/interim":   {"muster.outputs.interim"},

		"/outputs/incremental": {"muster.outputs.incremental"},
		"/outputs/save_every":  {"muster.outputs.interval"},
	}
}

// origins are the sources of each part of the plan that was set, by its JSON pointer: a file and pointer of the
// definition, or the launcher's variable. A part that is not listed is a default.
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
	if !b.byName {
		delete(out, "/discovery/address")
	}
	if _, ok := out["/framework"]; !ok && b.app.Settings.FrameworkWhy != "" {
		out["/framework"] = b.app.Settings.FrameworkWhy
	}
	if why := b.app.Settings.PAI.VersionWhy; why != "" {
		out["/pai/version"] = why
	}
	if from := b.origin("site.fs.defaultFS"); from != "" && b.usesData() {
		out["/default_fs"] = from
	}
	for what, from := range b.req.Origins {
		if at, ok := b.pointerOf(what); ok {
			out[at] = from
		}
	}
	return out
}

// pointerOf is the pointer in the plan that an origin of the allocation belongs to; false if the plan does not contain
// it: folders, or a port that nothing requests.
func (b *builder) pointerOf(what string) (string, bool) {
	switch what {
	case "app_id":
		return "/app/id", true
	case "component", "index":
		return "/who/" + what, true
	case "default_fs":
		return "/default_fs", b.usesData() && b.defaultFS() == b.req.DefaultFS
	case "launcher", "host", "container_id", "devices", "kill_window":
		return "/allocation/" + what, true
	}
	if part, ok := strings.CutPrefix(what, "envelope."); ok {
		return "/allocation/envelope/" + part, true
	}
	if label, ok := strings.CutPrefix(what, "ports."); ok {
		_, granted := b.allocation().Ports[label]
		return "/allocation/ports/" + label, granted
	}
	return "", false
}

// origin is the component's own source of a key, else the global one.
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
