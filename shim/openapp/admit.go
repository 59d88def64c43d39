package openapp

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/muster-agent/muster/packages/sign"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/policy"
)

// admit refuses a package that the policy does not permit. The signature must be of the very bytes that were opened.
func admit(p policy.Policy, from Source) error {
	pkg := from.Package
	if !p.Packages.RequireSignature || pkg.Path == "" {
		return nil
	}
	if pkg.Folder {
		return refusePackage(p, fmt.Errorf("%s is a folder, which nobody can sign; muster package build %s -o FILE, "+
			"then sign it", pkg.Path, pkg.Path))
	}
	if from.Ref == Stdin {
		return refusePackage(p, errors.New("what comes on stdin has no signature; give it as a file with its "+
			"signature beside it"))
	}
	s, err := from.verify(p.Packages.Trusted)
	switch {
	case errors.Is(err, sign.ErrUnsigned) && from.URL != "":
		return refusePackage(p, fmt.Errorf("%w; sign it where it was built, with one of the keys %s, and publish "+
			"FILE%s beside it", err, keyIDs(p), sign.Ending))
	case errors.Is(err, sign.ErrUnsigned):
		return refusePackage(p, fmt.Errorf("%w; muster package sign %s --key with one of the keys %s", err, pkg.Path,
			keyIDs(p)))
	case err != nil:
		return refusePackage(p, fmt.Errorf("%w; get it again from who signed it, with its signature", err))
	case s.Digest != pkg.Digest:
		return refusePackage(p, fmt.Errorf("%s changed while it was opened: got sha256 %s, want %s",
			cmp.Or(from.URL, pkg.Path), pkg.Digest, s.Digest))
	}
	return nil
}

// verify checks the package's signature. For a fetched package its errors name the URL: the paths of the cache mean
// nothing to users.
func (f Source) verify(keys []sign.PublicKey) (sign.Signature, error) {
	if f.URL == "" {
		return sign.Verify(f.Package.Path, f.Signature, keys...)
	}
	bare, query, asks := strings.Cut(f.URL, "?")
	beside := bare + sign.Ending
	if asks {
		beside += "?" + query
	}
	if f.Signature == "" {
		return sign.Signature{}, fmt.Errorf("verify %s: %w: no %s", f.URL, sign.ErrUnsigned, beside)
	}
	s, err := sign.Verify(f.Package.Path, f.Signature, keys...)
	if err != nil {
		err = errors.New(strings.NewReplacer(f.Signature, beside, f.Package.Path, f.URL).Replace(err.Error()))
	}
	return s, err
}

func keyIDs(p policy.Policy) string {
	var ids []string
	for _, k := range p.Packages.Trusted {
		ids = append(ids, k.ID())
	}
	return strings.Join(ids, " or ")
}

func refusePackage(p policy.Policy, why error) error {
	return exit.With(exit.Forbidden, fmt.Errorf("the policy of this host (%s) takes signed packages only: %w", p.File,
		why))
}
