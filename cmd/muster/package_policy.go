package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/muster-agent/muster/packages/sign"
	"github.com/muster-agent/muster/shim/exit"
)

// policyPackages is what the operator says of app packages.
type policyPackages struct {
	// RequireSignature refuses a package that none of Keys has signed. The catalog's are part of muster and pass.
	RequireSignature bool `json:"require_signature"`
	// Keys are public keys of minisign: `RW…`, or the absolute path of a file.
	Keys []string `json:"keys"`

	keys []sign.PublicKey
}

func (p *policyPackages) check() error {
	for i, text := range p.Keys {
		if filepath.IsAbs(text) {
			if err := trusted(text); err != nil {
				return fmt.Errorf("keys[%d]: %w", i, err)
			}
		} else if _, err := sign.ParsePublicKey(text); err != nil {
			return fmt.Errorf("keys[%d]: got %q, want a public key (RW…) or the absolute path of one", i, text)
		}
		k, err := sign.OpenPublicKey(text)
		if err != nil {
			return fmt.Errorf("keys[%d]: %w", i, err)
		}
		p.keys = append(p.keys, k)
	}
	if p.RequireSignature && len(p.keys) == 0 {
		return errors.New("require_signature: got no keys, so that no package could run")
	}
	return nil
}

// admit refuses a package that the policy does not let run. The opened package must be the very bytes that were signed.
func (p policy) admit(from source) error {
	pkg := from.pkg
	if !p.Packages.RequireSignature || pkg.Path == "" {
		return nil
	}
	if pkg.Folder {
		return p.refusePackage(fmt.Errorf("%s is a folder, which nobody can sign; muster package build %s -o FILE, then sign it", pkg.Path, pkg.Path))
	}
	if from.ref == stdinRef {
		return p.refusePackage(errors.New("what comes on stdin has no signature; give it as a file with its signature beside it"))
	}
	s, err := from.verify(p.Packages.keys)
	switch {
	case errors.Is(err, sign.ErrUnsigned) && from.url != "":
		return p.refusePackage(fmt.Errorf("%w; sign it where it was built, with one of the keys %s, and publish FILE%s beside it", err, p.keyIDs(), sign.Ending))
	case errors.Is(err, sign.ErrUnsigned):
		return p.refusePackage(fmt.Errorf("%w; muster package sign %s --key with one of the keys %s", err, pkg.Path, p.keyIDs()))
	case err != nil:
		return p.refusePackage(fmt.Errorf("%w; get it again from who signed it, with its signature", err))
	case s.Digest != pkg.Digest:
		return p.refusePackage(fmt.Errorf("%s changed while it was opened: got sha256 %s, want %s", cmp.Or(from.url, pkg.Path), pkg.Digest, s.Digest))
	}
	return nil
}

// verify checks who signed the package. Of what was fetched its errors name the URL: nobody knows the paths of the cache,
// and nothing that is done to a file there would last.
func (f source) verify(keys []sign.PublicKey) (sign.Signature, error) {
	if f.url == "" {
		return sign.Verify(f.pkg.Path, f.signature, keys...)
	}
	bare, query, asks := strings.Cut(f.url, "?")
	beside := bare + sign.Ending
	if asks {
		beside += "?" + query
	}
	if f.signature == "" {
		return sign.Signature{}, fmt.Errorf("verify %s: %w: no %s", f.url, sign.ErrUnsigned, beside)
	}
	s, err := sign.Verify(f.pkg.Path, f.signature, keys...)
	if err != nil {
		err = errors.New(strings.NewReplacer(f.signature, beside, f.pkg.Path, f.url).Replace(err.Error()))
	}
	return s, err
}

func (p policy) keyIDs() string {
	var ids []string
	for _, k := range p.Packages.keys {
		ids = append(ids, k.ID())
	}
	return strings.Join(ids, " or ")
}

func (p policy) refusePackage(why error) error {
	return exit.With(exit.Forbidden, fmt.Errorf("the policy of this host (%s) takes signed packages only: %w", p.path, why))
}
