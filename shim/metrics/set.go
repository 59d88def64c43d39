package metrics

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/muster-agent/muster/shim/journal/timeline"
	"github.com/muster-agent/muster/shim/samples"
	"github.com/muster-agent/muster/shim/status"
)

// ContentType is that of the text.
var ContentType = string(expfmt.NewFormat(expfmt.TypeTextPlain))

// Instance is what its agent knows of an instance.
type Instance struct {
	status.State
	Silence status.Silence
	Use     samples.Reading
	Running bool // Use was read
	Limits  samples.Limits
	Spent   *timeline.Timeline // nil: too much has happened for it to be known
	Counts
	CheckpointAt time.Time // zero: the agent has seen none become complete
}

// Counts only rise.
type Counts struct{ OOM, RegistryErrors int64 }

// App is what a listing knows of an app.
type App struct {
	App, Phase        string
	Live, Unreachable int
	Started           *time.Time
}

// Set is the metrics of one answer. The zero value is empty.
type Set struct{ families map[string]*dto.MetricFamily }

// labels are pairs of name and value.
type labels []string

func (s *Set) add(k kind, l labels, v float64) { s.put(k, l, k.metric(v)) }

func (s *Set) put(k kind, l labels, m *dto.Metric) {
	m.Label = nil
	for pair := range slices.Chunk(l, 2) {
		m.Label = append(m.Label, &dto.LabelPair{Name: &pair[0], Value: &pair[1]})
	}
	if s.families == nil {
		s.families = map[string]*dto.MetricFamily{}
	}
	if s.families[k.Name] == nil {
		s.families[k.Name] = k.family()
	}
	s.families[k.Name].Metric = append(s.families[k.Name].Metric, m)
}

func labelsOf(app string, i status.Identity) labels {
	return labels{"app", app, "component", i.Component, "index", strconv.Itoa(i.Index)}
}

// AddInstance adds what is known of an instance at a moment.
func (s *Set) AddInstance(i Instance, now time.Time) {
	mine := labelsOf(i.App, i.Identity)
	add := func(k kind, v float64, more ...string) { s.add(k, append(slices.Clip(mine), more...), v) }
	add(phase, 1, phase.Label, i.Phase)
	s.addUse(add, i)
	add(generation, float64(i.Generation))
	add(attempt, float64(i.Attempt))
	add(restarts, float64(i.Restarts))
	add(failures, float64(i.Failures))
	add(oom, float64(i.OOM))
	if i.Progress != nil {
		add(progress, *i.Progress)
	}
	if i.CheckpointStep != nil {
		add(step, float64(*i.CheckpointStep))
	}
	if !i.CheckpointAt.IsZero() {
		add(stepAge, now.Sub(i.CheckpointAt).Seconds())
	}
	if i.NoOutputSince != nil {
		add(noOutput, now.Sub(*i.NoOutputSince).Seconds())
	}
	if i.Spent != nil {
		for _, what := range timeline.Kinds() {
			add(spent, i.Spent.Spent[what], spent.Label, what)
		}
	}
	add(warnings, float64(len(i.Warnings)))
	add(silence, i.Silence.Silence)
	add(unheard, float64(i.RegistryErrors))
	add(fenced, truth(i.Silence.Fenced))
}

func (s *Set) addUse(add func(kind, float64, ...string), i Instance) {
	known := func(k kind, v, per float64, more ...string) {
		if v >= 0 {
			add(k, v/per, more...)
		}
	}
	if i.Limits.Memory > 0 {
		add(memoryLimit, float64(i.Limits.Memory))
	}
	if i.Limits.Cores > 0 {
		add(cpuLimit, float64(i.Limits.Cores))
	}
	if !i.Running {
		return
	}
	known(memory, float64(i.Use.Memory), 1)
	known(cpu, i.Use.CPU.Seconds(), 1)
	for _, g := range i.Use.GPUs {
		known(gpuUse, g.Use, 100, gpuUse.Label, g.ID)
		known(gpuMemory, float64(g.Memory), 1, gpuMemory.Label, g.ID)
		known(gpuSize, float64(g.Total), 1, gpuSize.Label, g.ID)
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// AddApp adds what is known of an app.
func (s *Set) AddApp(a App) {
	mine := labels{"app", a.App}
	s.add(appPhase, append(slices.Clip(mine), appPhase.Label, a.Phase), 1)
	s.add(appLive, mine, float64(a.Live))
	s.add(appUnreachable, mine, float64(a.Unreachable))
	if a.Started != nil {
		s.add(appStart, mine, float64(a.Started.UnixMilli())/1000)
	}
}

// MostText is how long the answer of one agent may be, in bytes.
const MostText = 1 << 20

// Read adds the answer of the agent of one instance. What else an agent may say, as of another app, is left out.
func (s *Set) Read(from io.Reader, app string, i status.Identity) error {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(from)
	if err != nil {
		return fmt.Errorf("metrics of %s/%s: %w", app, i.Instance, err)
	}
	for _, k := range kinds() {
		f := families[k.Name]
		if f == nil || k.OfApp || f.GetType() != k.family().GetType() {
			continue
		}
		known := map[string]bool{} // twice the same would make the whole text useless
		for _, m := range f.Metric[:min(len(f.Metric), mostOfKind)] {
			l, value := labelsOf(app, i), ""
			if k.Label != "" {
				value = labelOf(m, k.Label)
				l = append(l, k.Label, value)
			}
			if !known[value] {
				known[value], m.TimestampMs = true, nil
				s.put(k, l, m)
			}
		}
	}
	return nil
}

// mostOfKind bounds the values of one metric that an instance may have: its GPUs, or kinds of time.
const mostOfKind = 64

func labelOf(m *dto.Metric, name string) string {
	for _, l := range m.Label {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// Write writes all of it.
func (s *Set) Write(to io.Writer) error {
	for _, k := range kinds() {
		if f := s.families[k.Name]; f != nil {
			if _, err := expfmt.MetricFamilyToText(to, f); err != nil {
				return err
			}
		}
	}
	return nil
}
