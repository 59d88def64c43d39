package nomad

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/render"
)

// hclBody writes blocks and attributes; hclwrite quotes the values, `${` and `%{` in them, too.
type hclBody struct{ *hclwrite.Body }

func (b hclBody) set(name string, value cty.Value) { b.SetAttributeValue(name, value) }

func (b hclBody) text(name, value string) {
	if value != "" {
		b.set(name, cty.StringVal(value))
	}
}

func (b hclBody) number(name string, n int) { b.set(name, cty.NumberIntVal(int64(n))) }

func (b hclBody) span(name string, d time.Duration) { b.set(name, cty.StringVal(render.SpanText(d))) }

func (b hclBody) list(name string, texts []string) {
	values := make([]cty.Value, len(texts))
	for i, text := range texts {
		values[i] = cty.StringVal(text)
	}
	if len(values) == 0 {
		b.set(name, cty.ListValEmpty(cty.String))
		return
	}
	b.set(name, cty.ListVal(values))
}

func (b hclBody) block(kind string, labels ...string) hclBody {
	return hclBody{b.AppendNewBlock(kind, labels).Body()}
}

func (b hclBody) note(lines ...string) {
	for _, line := range lines {
		text := []byte("# " + render.OneLine(line) + "\n")
		b.AppendUnstructuredTokens(hclwrite.Tokens{{Type: hclsyntax.TokenComment, Bytes: text}})
	}
}

func (b hclBody) blank() { b.AppendNewline() }

// hcl is the job as `nomad job run` takes it.
func (w writer) hcl(job jobSpec) string {
	file := hclwrite.NewEmptyFile()
	root := hclBody{file.Body()}
	b := root.block("job", job.ID)
	b.text("region", job.Region)
	b.text("namespace", job.Namespace)
	b.list("datacenters", job.Datacenters)
	b.text("type", job.Type)
	b.number("priority", job.Priority)
	b.blank()
	meta := b.block("meta")
	for _, name := range slices.Sorted(maps.Keys(job.Meta)) {
		meta.text(name, job.Meta[name])
	}
	b.constraints(job.Constraints)
	for _, g := range job.TaskGroups {
		b.blank()
		b.note("The group's name is the component; the allocation's index is the instance's.")
		b.block("group", g.Name).group(g)
	}
	header := w.Header("A batch job of Nomad, written by muster render nomad.",
		append([]string{"  nomad job run " + w.Options.AppID + ".nomad.hcl", ""}, render.CodeLines()...)...)
	return render.Comment(header) + "\n" + string(hclwrite.Format(file.Bytes()))
}

func (b hclBody) constraints(list []constraint) {
	for _, c := range list {
		b.blank()
		in := b.block("constraint")
		in.text("attribute", c.LTarget)
		if c.Operand != "=" {
			in.text("operator", c.Operand)
		}
		in.text("value", c.RTarget)
	}
}

func (b hclBody) group(g group) {
	b.number("count", g.Count)
	b.constraints(g.Constraints)
	for _, n := range g.Networks {
		b.blank()
		in := b.block("network")
		in.note("Of the host: what the other members connect to. A label is the port's name in the app.")
		in.text("mode", n.Mode)
		for _, p := range n.DynamicPorts {
			in.block("port", p.Label)
		}
		for _, p := range n.ReservedPorts {
			in.block("port", p.Label).number("static", p.Value)
		}
	}
	b.blank()
	b.note("An agent that was killed comes back here, with its index and its ports.")
	in := b.block("restart")
	in.number("attempts", g.RestartPolicy.Attempts)
	in.span("interval", g.RestartPolicy.Interval)
	in.span("delay", g.RestartPolicy.Delay)
	in.text("mode", g.RestartPolicy.Mode)
	b.blank()
	b.note("Then on another host, with other ports: the gang is formed again around it.")
	in = b.block("reschedule")
	in.number("attempts", g.ReschedulePolicy.Attempts)
	in.span("interval", g.ReschedulePolicy.Interval)
	in.span("delay", g.ReschedulePolicy.Delay)
	in.text("delay_function", g.ReschedulePolicy.DelayFunction)
	in.span("max_delay", g.ReschedulePolicy.MaxDelay)
	in.set("unlimited", cty.BoolVal(g.ReschedulePolicy.Unlimited))
	for _, t := range g.Tasks {
		b.blank()
		b.block("task", t.Name).task(t)
	}
}

func (b hclBody) task(t taskSpec) {
	b.text("driver", t.Driver)
	b.text("user", t.User)
	b.blank()
	b.note("SIGINT begins the grace; SIGKILL follows after kill_timeout, which the agent is told as --kill-window.")
	b.text("kill_signal", t.KillSignal)
	b.span("kill_timeout", t.KillTimeout)
	b.note("Nobody is to be drained: the others are told as soon as it leaves.")
	b.span("shutdown_delay", t.ShutdownDelay)
	for _, a := range t.Artifacts {
		b.blank()
		in := b.block("artifact")
		in.text("source", a.GetterSource)
		in.text("mode", a.GetterMode)
		in.text("destination", a.RelativeDest)
		if sum := a.GetterOptions["checksum"]; sum != "" {
			in.block("options").text("checksum", sum)
		}
	}
	b.blank()
	in := b.block("config")
	in.text("command", t.Config.Command)
	in.words("args", t.Config.Args)
	if len(t.Env) > 0 {
		b.blank()
		in = b.block("env")
		for _, name := range slices.Sorted(maps.Keys(t.Env)) {
			in.text(name, t.Env[name])
		}
	}
	b.blank()
	b.resources(t.Resources)
	b.blank()
	b.note("Of the agent's own words; the programs' logs lie in the allocation's folder, logs/muster.")
	in = b.block("logs")
	in.number("max_files", t.LogConfig.MaxFiles)
	in.number("max_file_size", t.LogConfig.MaxFileSizeMB)
}

// words are a list with an option and its value on each line.
func (b hclBody) words(name string, texts []string) {
	tokens := hclwrite.Tokens{
		{Type: hclsyntax.TokenOBrack, Bytes: []byte("[")}, {Type: hclsyntax.TokenNewline, Bytes: []byte("\n")},
	}
	for i, text := range texts {
		tokens = append(tokens, hclwrite.TokensForValue(cty.StringVal(text))...)
		tokens = append(tokens, &hclwrite.Token{Type: hclsyntax.TokenComma, Bytes: []byte(",")})
		if i+1 == len(texts) || strings.HasPrefix(texts[i+1], "-") {
			tokens = append(tokens, &hclwrite.Token{Type: hclsyntax.TokenNewline, Bytes: []byte("\n")})
		}
	}
	b.SetAttributeRaw(name, append(tokens, &hclwrite.Token{Type: hclsyntax.TokenCBrack, Bytes: []byte("]")}))
}

func (b hclBody) resources(r resources) {
	in := b.block("resources")
	if r.Cores > 0 {
		in.number("cores", r.Cores)
	} else {
		in.note(fmt.Sprintf("MHz: a vcore is taken for %d.", coreMHz))
		in.number("cpu", r.CPU)
	}
	in.note(fmt.Sprintf("MB: the process's limit, and %d for the agent.", plan.AgentMemoryMB))
	in.number("memory", r.MemoryMB)
	for _, d := range r.Devices {
		in.blank()
		device := in.block("device", d.Name)
		device.number("count", d.Count)
		device.constraints(d.Constraints)
	}
}
