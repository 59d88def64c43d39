package metrics

import dto "github.com/prometheus/client_model/go"

// kind is a metric that muster has.
type kind struct {
	Name, Help string
	Counter    bool   // it only rises; otherwise it is a gauge
	Label      string // beside app, component and index
	OfApp      bool   // its only label is app, and Label; muster ui has it, an agent has not
}

// The metrics.
var (
	phase = kind{
		Name: "muster_instance_phase", Label: "phase",
		Help: "1 for the phase in which the instance is.",
	}

	memory      = kind{Name: "muster_memory_bytes", Help: "Memory in use, as the limit counts it."}
	memoryLimit = kind{
		Name: "muster_memory_limit_bytes",
		Help: "Limit of memory in force; absent where there is none.",
	}
	cpu = kind{
		Name: "muster_cpu_seconds_total", Counter: true,
		Help: "Processor time of the instance; a new container begins at 0.",
	}
	cpuLimit = kind{
		Name: "muster_cpu_limit_cores",
		Help: "Processors that the instance was promised; absent where none were.",
	}
	gpuUse = kind{
		Name: "muster_gpu_use_ratio", Label: "gpu",
		Help: "Share of the last moments in which a granted GPU worked.",
	}
	gpuMemory = kind{Name: "muster_gpu_memory_bytes", Label: "gpu", Help: "Memory in use on a granted GPU."}
	gpuSize   = kind{Name: "muster_gpu_memory_size_bytes", Label: "gpu", Help: "Memory of a granted GPU."}

	generation = kind{Name: "muster_generation", Help: "Generation of the gang that the instance is of."}
	attempt    = kind{Name: "muster_attempt", Help: "Start of its process that the instance is at, from 1."}
	restarts   = kind{
		Name: "muster_restarts_total", Counter: true,
		Help: "Starts of the process after the first.",
	}
	failures = kind{
		Name: "muster_failures_total", Counter: true,
		Help: "Ends of the process that nobody had asked for, since the agent started.",
	}
	oom = kind{
		Name: "muster_oom_ends_total", Counter: true,
		Help: "Ends of the process for want of memory, since the agent started.",
	}

	progress = kind{
		Name: "muster_progress_ratio",
		Help: "Progress that the process reported, 0 to 1; absent before it did.",
	}
	step = kind{
		Name: "muster_checkpoint_step",
		Help: "Step of the newest complete checkpoint; absent before the first.",
	}
	stepAge = kind{
		Name: "muster_checkpoint_age_seconds",
		Help: "Time since the agent saw that checkpoint complete.",
	}
	noOutput = kind{
		Name: "muster_no_output_seconds",
		Help: "Time without a sign of life, once it is longer than muster.silence.",
	}
	spent = kind{
		Name: "muster_time_seconds", Label: "kind",
		Help: "Where the instance's time went since the agent started, by kind.",
	}
	warnings = kind{Name: "muster_warnings", Help: "Warnings that stand."}
	silence  = kind{
		Name: "muster_registry_silence_seconds",
		Help: "Time since the registry last answered the agent.",
	}
	unheard = kind{
		Name: "muster_registry_errors_total", Counter: true,
		Help: "Requests that the registry did not answer, or refused for rights or rate.",
	}
	fenced = kind{
		Name: "muster_fenced",
		Help: "1 while the process is stopped because the agent is cut off, else 0.",
	}
	appPhase = kind{
		Name: "muster_app_phase", Label: "phase", OfApp: true,
		Help: "1 for the phase in which the app's run is.",
	}
	appLive = kind{
		Name: "muster_app_live_instances", OfApp: true,
		Help: "Instances of the app with a living agent.",
	}
	appUnreachable = kind{
		Name: "muster_app_unreachable_agents", OfApp: true,
		Help: "Living agents that did not answer when their metrics were asked for.",
	}
	appStart = kind{
		Name: "muster_app_start_time_seconds", OfApp: true,
		Help: "When the run started, in Unix time.",
	}
)

// kinds are all of them, in the order of the manual.
func kinds() []kind {
	return []kind{
		phase, memory, memoryLimit, cpu, cpuLimit, gpuUse, gpuMemory, gpuSize, generation, attempt, restarts, failures,
		oom, progress, step, stepAge, noOutput, spent, warnings, silence, unheard, fenced, appPhase, appLive,
		appUnreachable, appStart,
	}
}

func (k kind) family() *dto.MetricFamily {
	t := dto.MetricType_GAUGE
	if k.Counter {
		t = dto.MetricType_COUNTER
	}
	return &dto.MetricFamily{Name: &k.Name, Help: &k.Help, Type: &t}
}

func (k kind) metric(v float64) *dto.Metric {
	if k.Counter {
		return &dto.Metric{Counter: &dto.Counter{Value: &v}}
	}
	return &dto.Metric{Gauge: &dto.Gauge{Value: &v}}
}
