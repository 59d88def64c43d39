package checkpoint

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/muster-agent/muster/registry"
)

// adopt commits what this instance has in the store where the registry has never heard of any of its checkpoints: the
// registry lost its data, and the manifests decide.
func (u *uploader) adopt(ctx context.Context, in registry.Instance) error {
	own, err := u.m.cfg.Registry().Own(ctx)
	if err != nil || own.Inc != "" {
		return err
	}
	mine, err := u.manifests(ctx, in.String())
	if err != nil || len(mine) == 0 {
		return err
	}
	gang, err := u.gangManifests(ctx, in, mine)
	if err != nil {
		return err
	}
	var steps []registry.CheckpointStep
	for _, m := range standing(gang) {
		if m.Instance != in.String() {
			continue
		}
		kept := m.Copy()
		one := registry.CheckpointStep{Step: m.Step, URI: u.url(kept), SHA256: u.sums[kept], Shared: m.Shared}
		steps = append(steps, one)
	}
	if len(steps) == 0 {
		return nil
	}
	newest := steps[len(steps)-1].Step
	u.m.cfg.Log.Info("committing checkpoints that only the store knows", "newest", newest, "number", len(steps))
	gen := u.m.cfg.Registry().Record().Gen
	return u.m.cfg.Registry().Store(ctx, gen, steps...)
}

// manifests are those of an instance's intact checkpoints, oldest first.
func (u *uploader) manifests(ctx context.Context, instance string) ([]Manifest, error) {
	kept, err := u.remote.List(ctx, instance)
	if err != nil {
		return nil, err
	}
	var all []Manifest
	for _, one := range kept {
		m, sum, err := u.remote.Read(ctx, one)
		if errors.Is(err, errTorn) || errors.Is(err, errAbsent) {
			u.m.cfg.Log.Warn(storedSkipped, "at", u.url(one), "why", err)
			continue
		}
		if err != nil {
			return nil, err
		}
		u.sums[one] = sum
		all = append(all, m)
	}
	return all, nil
}

// gangManifests adds the manifests of all instances that resume from the same step as this one: what one of them stored
// in a later generation shows which branch all of them gave up.
func (u *uploader) gangManifests(
	ctx context.Context, in registry.Instance, mine []Manifest,
) ([]Manifest, error) {
	resumes := map[string]bool{}
	for _, c := range u.m.cfg.Facts().Components {
		resumes[c.Name] = c.Resumes()
	}
	instances, err := u.remote.Instances(ctx)
	if err != nil {
		return nil, err
	}
	all := slices.Clone(mine)
	for _, name := range instances {
		component := name[:strings.LastIndexByte(name, '-')]
		together := resumes[in.Component] && resumes[component]
		if name == in.String() || !mine[len(mine)-1].Shared && !together {
			continue
		}
		theirs, err := u.manifests(ctx, name)
		if err != nil {
			return nil, err
		}
		foreign := func(m Manifest) bool { return !m.Shared && !together }
		all = append(all, slices.DeleteFunc(theirs, foreign)...)
	}
	return all, nil
}
