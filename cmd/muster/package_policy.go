package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/packages/sign"
	"github.com/muster-agent/muster/shim"
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

// admit refuses a package that the policy does not let run. signature is the path of the package's signature; the
// opened package must be the very bytes that were signed.
func (p policy) admit(pkg *packages.Package, signature string) error {
	if !p.Packages.RequireSignature || pkg.Path == "" {
		return nil
	}
	if pkg.Folder {
		return p.refusePackage(fmt.Errorf("%s is a folder, which nobody can sign; muster package build %s -o FILE, then sign it", pkg.Path, pkg.Path))
	}
	s, err := sign.Verify(pkg.Path, signature, p.Packages.keys...)
	switch {
	case errors.Is(err, sign.ErrUnsigned):
		return p.refusePackage(fmt.Errorf("%w; muster package sign %s --key with one of the keys %s", err, pkg.Path, p.keyIDs()))
	case err != nil:
		return p.refusePackage(fmt.Errorf("%w; get it again from who signed it, with its signature", err))
	case s.Digest != pkg.Digest:
		return p.refusePackage(fmt.Errorf("%s changed while it was opened: got sha256 %s, want %s", pkg.Path, pkg.Digest, s.Digest))
	}
	return nil
}

func (p policy) keyIDs() string {
	var ids []string
	for _, k := range p.Packages.keys {
		ids = append(ids, k.ID())
	}
	return strings.Join(ids, " or ")
}

func (p policy) refusePackage(why error) error {
	return withCode(shim.CodeForbidden, fmt.Errorf("the policy of this host (%s) takes signed packages only: %w", p.path, why))
}
