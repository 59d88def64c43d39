package plan

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// process is the command and its environment, as far as the plan knows them.
func (b *builder) process(p Plan) Process {
	s := b.component.Settings
	proc := Process{
		Argv: b.command(p.Script), Cwd: b.cwd(p.Script), Folder: b.req.root(), User: b.user(), Env: map[string]string{},
		Inherited: b.inherited(p.Root), Components: b.app.ComponentNames(),
		Shell: s.Command != "" && !p.Script.isFile(CommandStart) && !b.serves(),
	}
	proc.Verbatim = b.verbatim // by b.command
	if b.literal() {
		proc.Literal = s.Command
	}
	b.secrets(&proc, s.SecretSettings)
	if s.ResumeArgs != "" && p.Script != nil && !proc.Shell {
		b.warn(b.key("muster.resume.args"), appdef.Quote(s.ResumeArgs), "no value",
			"START is a script, which reads MUSTER_CHECKPOINT")
	} else if s.ResumeArgs != "" && !b.parked() && !b.serves() {
		proc.ResumeArgs = b.resumeArgs(s.ResumeArgs)
	}
	for name, value := range s.Env {
		if proc.Env[name] = value; !b.literal() {
			proc.Env[name] = b.text("muster.env."+name, value)
		}
	}
	devices := b.gpuEnv(p)
	for _, name := range slices.Sorted(maps.Keys(devices)) {
		if value, set := proc.Env[name]; set {
			b.warn(b.key("muster.env."+name), appdef.Quote(value), "no value",
				"the devices that yarn.io/gpu grants stand there; without it, none")
		}
	}
	maps.Copy(proc.Env, devices)
	maps.Copy(proc.Env, b.musterEnv(p))
	if p.Script != nil {
		b.scriptEnv(p.Script, proc.Env)
	}
	return proc
}

// secrets are named by reference; their values are read at each start.
func (b *builder) secrets(proc *Process, s appdef.SecretSettings) {
	proc.Secrets, proc.SecretRefs = slices.AppendSeq([]string{}, maps.Keys(s.Secrets)), map[string]string{}
	slices.Sort(proc.Secrets)
	proc.SecretForm, proc.JobSecrets = s.SecretForm, b.app.JobSecrets
	for name, ref := range s.Secrets {
		proc.SecretRefs[name] = b.text("muster.secret."+name, ref)
		if s.SecretForm == appdef.SecretsFile && strings.HasPrefix(ref, appdef.JobSecret) {
			b.problem(b.key("muster.secrets.form"), appdef.Quote(s.SecretForm), "both, or env",
				"the job's commands name its secret "+strings.TrimPrefix(ref, appdef.JobSecret)+" as the variable "+
					name)
		}
	}
}

func (b *builder) resumeArgs(text string) string {
	if b.component.Settings.Command != "" {
		return b.shellText("muster.resume.args", text)
	}
	if _, err := words(text); err != nil {
		b.problem(b.key("muster.resume.args"), appdef.Quote(text), "arguments as a shell reads them", err.Error())
	}
	return b.text("muster.resume.args", text)
}

// musterEnv are muster's own variables that are known before the roster. MUSTER_GENERATION, ATTEMPT, CHECKPOINT and
// STATUS_SOCKET follow at the start.
func (b *builder) musterEnv(p Plan) map[string]string {
	env := map[string]string{
		"MUSTER_APP_ID":         p.App.ID,
		"MUSTER_APP_NAME":       p.App.Name,
		"MUSTER_COMPONENT":      p.Who.Component,
		"MUSTER_INDEX":          strconv.Itoa(p.Who.Index),
		"MUSTER_INSTANCE":       b.req.instance(),
		"MUSTER_ROLE":           p.Who.Role,
		"MUSTER_RANK":           strconv.Itoa(p.Who.Rank),
		"MUSTER_WORLD_SIZE":     strconv.Itoa(p.Who.WorldSize),
		"MUSTER_HOST":           p.Allocation.Host,
		"MUSTER_WORK_DIR":       b.req.root(),
		"MUSTER_LOG_DIR":        b.req.log(),
		"MUSTER_ROSTER_FILE":    path.Join(b.req.root(), rosterFile),
		"MUSTER_CHECKPOINT_DIR": p.Checkpoint.Dir,
	}
	if b.component.Settings.Python != "" {
		env["MUSTER_PYTHON"] = b.python()
	}
	if b.app.Dialect == "slider" { // variables of Slider's agent for scripts (AgentProviderService)
		env["AGENT_WORK_ROOT"], env["AGENT_LOG_ROOT"] = b.req.root(), b.req.log()
	}
	for _, port := range p.Ports {
		env[portVariable(port.Name)] = portToken + port.Name + "}}"
	}
	if first := firstPort(p.Ports); first != "" {
		env["MUSTER_PORT"] = portToken + first + "}}"
	}
	return env
}

// portVariable is the name of the variable that has the number of a port.
func portVariable(port string) string { return "MUSTER_PORT_" + variable(port) }

// gpuEnv restricts the process to the devices that it was granted. Without a grant that is none, whatever the launcher
// and the host show: empty, CUDA_VISIBLE_DEVICES hides all, where unset shows all.
func (b *builder) gpuEnv(p Plan) map[string]string {
	if p.Limits.GPUs == 0 {
		return map[string]string{"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "", "GPU_NUM": "0"}
	}
	if b.req.GPUEnv != nil {
		return b.req.GPUEnv
	}
	devices := strings.Join(p.Allocation.Devices, ",")
	return map[string]string{
		"CUDA_VISIBLE_DEVICES": devices, "NVIDIA_VISIBLE_DEVICES": devices, "GPU_NUM": strconv.Itoa(p.Limits.GPUs),
	}
}
