package status

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"time"
)

// PeerIdentity is what an agent shows to the agents of other hosts: a certificate that it has made itself.
type PeerIdentity struct {
	Key  string // fingerprint of the public key, for the member's record: base64url of its sha256
	cert tls.Certificate
}

// certLife is how long a certificate is valid. Nobody looks at it: peers pin the key.
const certLife = 10 * 365 * 24 * time.Hour

// NewPeerIdentity makes the certificate of an instance's agent. Its key follows from the run's token, so that the next
// agent of the instance has the same: rosters name the key, and outlive an agent that is replaced alone. Who knows the
// token is of the gang already.
func NewPeerIdentity(token, app, instance string) (PeerIdentity, error) {
	key, err := deriveKey(token, app, instance)
	if err != nil {
		return PeerIdentity{}, fmt.Errorf("key for peer agents: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return PeerIdentity{}, fmt.Errorf("certificate for peer agents: %w", err)
	}
	now := time.Now()
	template := x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "muster " + app + " " + instance},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		return PeerIdentity{}, fmt.Errorf("certificate for peer agents: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return PeerIdentity{}, fmt.Errorf("certificate for peer agents: %w", err)
	}
	return PeerIdentity{
		Key:  fingerprint(cert),
		cert: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: cert},
	}, nil
}

// deriveKey is an instance's key. Numbers that are no key of the curve are rarer than one in 2^32.
func deriveKey(token, app, instance string) (*ecdsa.PrivateKey, error) {
	if token == "" {
		return nil, errors.New("the run has no token")
	}
	for n := 0; ; n++ {
		info := "muster peer key " + strconv.Itoa(n) + "\x00" + app + "\x00" + instance
		raw, err := hkdf.Key(sha256.New, []byte(token), nil, info, 32)
		if err != nil {
			return nil, err
		}
		if key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), raw); err == nil || n > 8 {
			return key, err
		}
	}
}

func fingerprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// server is the TLS of an agent that answers peers.
func (p PeerIdentity) server() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{p.cert}, NextProtos: []string{"http/1.1"},
		SessionTicketsDisabled: true,
	}
}

var (
	// errOtherKey refuses a peer that shows another key than its record names.
	errOtherKey = errors.New("the agent there shows another key than its record names, so nothing was sent to it; " +
		"something between the hosts may answer in its place")
	// errNoKey refuses a peer whose record names no key: nothing is sent without TLS.
	errNoKey = errors.New("its record names no key, so nothing was sent to it; it is of an earlier build")
)

// pinned is the TLS of an agent that asks the peer with that key. The key is all that counts: neither names nor
// authorities do.
func pinned(key string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection compares the key instead
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 {
				return errOtherKey
			}
			shown := fingerprint(state.PeerCertificates[0])
			if subtle.ConstantTimeCompare([]byte(shown), []byte(key)) != 1 {
				return fmt.Errorf("key %s instead of %s: %w", shown, key, errOtherKey)
			}
			return nil
		},
	}
}
