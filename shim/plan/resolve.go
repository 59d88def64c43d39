package plan

import (
	"maps"
	"slices"
	"strings"
)

// Dirs are the two folders of an agent that a plan leaves open, as absolute paths.
type Dirs struct {
	Work string
	Log  string
}

// Resolve replaces ${WORK} and ${LOG} by the real folders. Only this function does: before it a plan is printed, after
// it a plan runs. It does not change the argument.
func Resolve(p Plan, dirs Dirs) Plan {
	fill := strings.NewReplacer(Work, dirs.Work, logDir, dirs.Log).Replace
	p.Stage = slices.Clone(p.Stage)
	for i, s := range p.Stage {
		p.Stage[i].From, p.Stage[i].To = fill(s.From), fill(s.To)
	}
	p.Process.Argv = p.Process.filled(fill)
	if p.Process.Cwd == p.Process.Folder { // an image's folder stays as it is
		p.Process.Cwd = fill(p.Process.Cwd)
	}
	p.Process.Folder = fill(p.Process.Folder)
	p.Process.Env = eachValue(p.Process.Env, fill)
	p.Sides = slices.Clone(p.Sides)
	for i, s := range p.Sides {
		p.Sides[i].Argv, p.Sides[i].Env, p.Sides[i].History = s.filled(fill), eachValue(s.Env, fill), fill(s.History)
	}
	p.Script = p.Script.each(fill)
	p.Process.ResumeArgs = fill(p.Process.ResumeArgs)
	p.Exports = slices.Clone(p.Exports)
	for i, e := range p.Exports {
		p.Exports[i].Value = fill(e.Value)
	}
	p.Checkpoint.Dir, p.Checkpoint.Sync = fill(p.Checkpoint.Dir), fill(p.Checkpoint.Sync)
	p.Hadoop = p.Hadoop.resolved(fill)
	p.DefaultFS, p.PAI = fill(p.DefaultFS), p.PAI.resolved(fill)
	p.Inputs, p.Outputs = p.Inputs.resolved(fill), p.Outputs.resolved(fill)
	if p.Start != nil {
		p.Start = &Start{
			Argv: each(p.Start.Argv, fill), Env: eachValue(p.Start.Env, fill), Files: maps.Clone(p.Start.Files),
		}
	}
	return p
}

// filled is the command with its placeholders filled in, except in an image's words and in a literal one.
func (p Process) filled(fill func(string) string) []string {
	return slices.Concat(p.Argv[:p.Verbatim], each(p.Argv[p.Verbatim:], func(word string) string {
		if p.Literal != "" && word == p.Literal {
			return word
		}
		return fill(word)
	}))
}

// resolved puts the real folders into the inputs.
func (in *Inputs) resolved(fill func(string) string) *Inputs {
	if in == nil {
		return nil
	}
	out := *in
	out.From = slices.Clone(in.From)
	for i, one := range out.From {
		out.From[i].From = each(one.From, fill)
	}
	return &out
}

// resolved puts the real folders into the outputs.
func (o *Outputs) resolved(fill func(string) string) *Outputs {
	if o == nil {
		return nil
	}
	out := *o
	out.To = slices.Clone(o.To)
	for i, one := range out.To {
		out.To[i].To = fill(one.To)
	}
	return &out
}

// resolved puts the real folders into the values of a PAI job.
func (p *PAI) resolved(fill func(string) string) *PAI {
	if p == nil {
		return nil
	}
	out := *p
	for _, text := range []*string{&out.DefaultFS, &out.DataDir, &out.OutputDir, &out.CodeDir} {
		*text = fill(*text)
	}
	return &out
}

// resolved puts the real folders in.
func (h *Hadoop) resolved(fill func(string) string) *Hadoop {
	if h == nil {
		return nil
	}
	out := *h
	out.Tickets, out.Tokens = fill(h.Tickets), fill(h.Tokens)
	return &out
}

// filled is the command with its placeholders filled in, except in an image's words.
func (s Side) filled(fill func(string) string) []string {
	return Process{Argv: s.Argv, Verbatim: s.Verbatim, Literal: s.Literal}.filled(fill)
}
