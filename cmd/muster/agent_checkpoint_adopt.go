package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/checkpoint"
)

// adopt commits what this instance has in the store when the registry has never heard of any: it began anew, and the manifests
// decide.
func (k *uploader) adopt(ctx context.Context, in registry.Instance) error {
	stored, err := k.m.cfg.Registry().Stored(ctx)
	if _, known := stored[in]; err != nil || known {
		return err
	}
	mine, err := k.manifests(ctx, in.String())
	if err != nil || len(mine) == 0 {
		return err
	}
	standing, err := k.together(ctx, in, mine)
	if err != nil {
		return err
	}
	var steps []registry.CheckpointStep
	for _, m := range checkpoint.Standing(standing) {
		if m.Instance != in.String() {
			continue
		}
		kept := m.Kept()
		steps = append(steps, registry.CheckpointStep{Step: m.Step, URI: k.url(kept), SHA256: k.sums[kept], Shared: m.Shared})
	}
	if len(steps) == 0 {
		return nil
	}
	k.m.cfg.Log.Info("the registry knows of no checkpoints, the store does", "newest", steps[len(steps)-1].Step, "number", len(steps))
	return k.m.cfg.Registry().Store(ctx, k.m.cfg.Registry().Record().Gen, steps...)
}

// manifests are those of an instance's checkpoints that are as they were stored, oldest first.
func (k *uploader) manifests(ctx context.Context, instance string) ([]checkpoint.Manifest, error) {
	kept, err := k.vault.List(ctx, instance)
	if err != nil {
		return nil, err
	}
	var all []checkpoint.Manifest
	for _, one := range kept {
		m, sum, err := k.vault.Read(ctx, one)
		if errors.Is(err, checkpoint.ErrTorn) || errors.Is(err, checkpoint.ErrAbsent) {
			k.m.cfg.Log.Warn("checkpoint in the store is passed over", "at", k.url(one), "why", err)
			continue
		}
		if err != nil {
			return nil, err
		}
		k.sums[one] = sum
		all = append(all, m)
	}
	return all, nil
}

// together are the manifests of all who go on from the same step as this instance: what one of them has stored of a later
// generation shows which branch was given up by all.
func (k *uploader) together(ctx context.Context, in registry.Instance, mine []checkpoint.Manifest) ([]checkpoint.Manifest, error) {
	resumes := map[string]bool{}
	for _, c := range k.m.cfg.Facts().Components {
		resumes[c.Name] = c.Resumes()
	}
	instances, err := k.vault.Instances(ctx)
	if err != nil {
		return nil, err
	}
	all := slices.Clone(mine)
	for _, name := range instances {
		component := name[:strings.LastIndexByte(name, '-')]
		if name == in.String() || !mine[len(mine)-1].Shared && !(resumes[in.Component] && resumes[component]) {
			continue
		}
		theirs, err := k.manifests(ctx, name)
		if err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(theirs, func(m checkpoint.Manifest) bool { return !m.Shared && !(resumes[in.Component] && resumes[component]) })...)
	}
	return all, nil
}
