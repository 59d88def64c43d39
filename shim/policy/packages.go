package policy

import (
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

func (p *packageRules) check(s *source) {
	for i, text := range p.Keys {
		field := fmt.Sprintf("packages.keys[%d]", i)
		if !filepath.IsAbs(text) {
			if _, err := sign.ParsePublicKey(text); err != nil {
				s.bad(field, "got %q, want a public key (RW…) or the absolute path of one", text)
				continue
			}
		} else if err := trusted(text); err != nil {
			s.bad(field, "%w", err)
			continue
		}
		k, err := sign.OpenPublicKey(text)
		if err != nil {
			s.bad(field, "%w", err)
			continue
		}
		p.Trusted = append(p.Trusted, k)
	}
	if p.RequireSignature && len(p.Keys) == 0 {
		s.bad("packages.require_signature", `got no keys, so that no package could run; want "keys": ["RW…"]`)
	}
}
