package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	ispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Image is an image whose layers are unpacked and stay so until Close.
type Image struct {
	Ref    string   // as it was asked for
	Digest string   // of the manifest
	Layers []string // unpacked folders, lowest first: overlayfs's lower folders
	Config Config
	// UserXattr says that overlay marks are in user.* (mount option userxattr): an ordinary user has unpacked the
	// layers and owns every file.
	UserXattr bool

	cache cache
	held  []*lock
}

// Close gives up the layers: they may be removed from then on.
func (i *Image) Close() error {
	var errs []error
	for _, l := range i.held {
		errs = append(errs, l.Release())
	}
	i.held = nil
	return errors.Join(errs...)
}

// source is where manifests and blobs come from: a registry or a layout.
type source interface {
	// resolve gives what a tag means now.
	resolve(ctx context.Context, tag string) (ispec.Descriptor, error)
	// small gives a manifest, an index or a configuration, checked against its digest.
	small(ctx context.Context, what string, d ispec.Descriptor) ([]byte, error)
	// layer gives a layer's blob; its digest is checked while it is unpacked.
	layer(ctx context.Context, d ispec.Descriptor) (*blob, error)
	close()
}

// Pull makes an image's layers ready: what is not in the cache is fetched, checked and unpacked. The reference is one
// of a registry by Docker Hub's rules, NAME[:TAG][@DIGEST], or oci:DIR[:TAG]. A name with a digest whose parts are all
// in the cache needs no network; a tag is asked for again each time, and where the registry is unreachable what it last
// referred to is taken, with a warning. Errors are *Error.
func Pull(ctx context.Context, ref string, o Options) (*Image, error) {
	o, err := o.filled()
	if err != nil {
		return nil, &Error{Ref: ref, Err: err}
	}
	where, err := parseReference(ref, o.Insecure, o.Layout)
	if err != nil {
		return nil, &Error{Ref: printable(ref), Err: err, Hint: hint(err, "")}
	}
	p := puller{Options: o, where: where, tally: &tally{now: Progress{Ref: ref}, report: o.Progress}}
	im, err := p.pull(ctx)
	if err != nil {
		return nil, &Error{Ref: ref, Registry: where.host(), Err: err, Hint: hint(err, where.host())}
	}
	p.tally.finish()
	return im, nil
}

// puller is one pull.
type puller struct {
	Options
	where  reference
	want   platform
	cache  cache
	source source
	tally  *tally
	form   form
}

func (p *puller) pull(ctx context.Context) (_ *Image, err error) {
	if p.want, err = parsePlatform(p.Platform); err != nil {
		return nil, err
	}
	if p.cache, err = openCache(p.Cache); err != nil {
		return nil, err
	}
	if p.form, err = formHere(p.cache.root); err != nil {
		return nil, err
	}
	if p.where.name == nil {
		p.source = layout{p.where.dir, p.Layout}
	} else {
		p.source = newRegistry(p.where.name, p.Options, p.cache, p.tally)
	}
	defer p.source.close()
	top, err := p.resolve(ctx)
	if err != nil {
		return nil, err
	}
	im, refs, err := p.describe(ctx, top, 0)
	if err != nil {
		return nil, err
	}
	return im, p.ready(ctx, im, refs)
}

// resolve finds the top document: named by digest, asked for, or remembered.
func (p *puller) resolve(ctx context.Context) (ispec.Descriptor, error) {
	if d := p.where.digest(); d != "" {
		return ispec.Descriptor{Digest: digest.Digest(d)}, nil
	}
	if p.where.name == nil {
		d, err := p.source.resolve(ctx, p.where.tag)
		if err != nil {
			return d, err
		}
		return d, checkDescriptor("index", d)
	}
	name := p.where.name.Name()
	d, err := p.source.resolve(ctx, p.where.name.Identifier())
	if err == nil {
		return d, p.cache.remember(name, d)
	}
	if !errors.Is(err, ErrUnreachable) {
		return d, err
	}
	was, recallErr := p.cache.recall(name)
	if recallErr != nil {
		if !errors.Is(recallErr, fs.ErrNotExist) {
			err = errors.Join(err, recallErr)
		}
		return d, err
	}
	p.Logger.Warn("registry unreachable: using what the tag last referred to", "image", p.where.text, "digest",
		was.Descriptor.Digest, "seen", was.At, "err", err)
	return was.Descriptor, nil
}

// describe reads down from the top document to the image's configuration.
func (p *puller) describe(ctx context.Context, d ispec.Descriptor, depth int) (*Image, []layerRef, error) {
	kind := d.MediaType
	if kind != "" && !readableManifest(kind) {
		return nil, nil, refuse("got media type %q, want an image manifest or an index of them", printable(kind))
	}
	text, err := p.source.small(ctx, "manifest", d)
	if err != nil {
		return nil, nil, err
	}
	if kind == "" {
		if kind, err = sniff(text); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case isIndex(kind) && depth < maxIndexes:
		index, err := parseIndex(text)
		if err != nil {
			return nil, nil, err
		}
		chosen, err := choose(index, p.want)
		if err != nil {
			return nil, nil, err
		}
		return p.describe(ctx, chosen, depth+1)
	case isManifest(kind):
		return p.configure(ctx, d.Digest, text)
	}
	return nil, nil, refuse("got %q below %d others of its kind, want an image manifest", printable(kind), depth)
}

func (p *puller) configure(ctx context.Context, d digest.Digest, manifest []byte) (*Image, []layerRef, error) {
	m, err := parseManifest(manifest)
	if err != nil {
		return nil, nil, err
	}
	text, err := p.source.small(ctx, "config", m.Config)
	if err != nil {
		return nil, nil, err
	}
	config, diffIDs, have, err := parseConfig(text)
	if err != nil {
		return nil, nil, err
	}
	if !p.want.fits(have) && have != (platform{}) {
		return nil, nil, &platformError{Want: p.want.String(), Have: []string{printable(have.String())}}
	}
	refs, err := layers(m, diffIDs)
	if err != nil {
		return nil, nil, err
	}
	im := &Image{Ref: p.where.text, Digest: d.String(), Config: config, UserXattr: p.form.userXattr(), cache: p.cache}
	return im, refs, nil
}

// ready makes all layers, several at a time. When one fails the others are called off.
func (p *puller) ready(ctx context.Context, im *Image, refs []layerRef) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.tally.add(func(now *Progress) { now.Layers = len(refs) })
	im.Layers = make([]string, len(refs))
	im.held = make([]*lock, len(refs))
	slots := make(chan struct{}, p.Parallel)
	var all sync.WaitGroup
	for i, ref := range refs {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			var err error
			if im.Layers[i], im.held[i], err = p.layer(ctx, ref); err != nil {
				cancel(fmt.Errorf("layer %d of %d: %w", i+1, len(refs), err)) // the first is kept
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		var held []*lock
		for _, l := range im.held {
			if l != nil {
				held = append(held, l)
			}
		}
		im.held = held
		return errors.Join(err, im.Close())
	}
	return nil
}

// sniff tells an index from a manifest when only the digest was known.
func sniff(text []byte) (string, error) {
	var head struct {
		MediaType string            `json:"mediaType"`
		Manifests []json.RawMessage `json:"manifests"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return "", refuse("manifest: %v", err)
	}
	switch {
	case head.MediaType != "":
		return strings.TrimSpace(head.MediaType), nil
	case head.Manifests != nil:
		return ispec.MediaTypeImageIndex, nil
	}
	return ispec.MediaTypeImageManifest, nil
}
