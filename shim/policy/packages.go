package policy

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/muster-agent/muster/packages/sign"
)

// packageRules is what the operator says of app packages.
type packageRules struct {
	// RequireSignature refuses a package that none of Keys has signed. The catalog's are part of muster and pass.
	RequireSignature bool `json:"require_signature"`
	// Keys are public keys of minisign: `RW…`, or the absolute path of a file.
	Keys []string `json:"keys"`

	// Trusted are Keys, read.
	Trusted []sign.PublicKey `json:"-"`
}

func (p *packageRules) check() error {
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
		p.Trusted = append(p.Trusted, k)
	}
	if p.RequireSignature && len(p.Trusted) == 0 {
		return errors.New("require_signature: got no keys, so that no package could run")
	}
	return nil
}
