package ui

import (
	"crypto/tls"
	"os"
	"sync"
	"time"
)

// KeyPair is a certificate and its key in files that may be replaced at any time.
type KeyPair struct {
	Cert, Key string

	mu      sync.Mutex
	changed time.Time // the certificate's change that was read last
	pair    *tls.Certificate
}

// Get is for tls.Config. While new files do not fit together, as between the writing of the two, the last pair holds.
func (p *KeyPair) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, err := os.Stat(p.Cert)
	if err == nil && p.pair != nil && at.ModTime().Equal(p.changed) {
		return p.pair, nil
	}
	pair, err := tls.LoadX509KeyPair(p.Cert, p.Key)
	switch {
	case err == nil:
		p.pair, p.changed = &pair, at.ModTime()
	case p.pair == nil:
		return nil, err
	}
	return p.pair, nil
}
