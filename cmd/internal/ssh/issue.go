package ssh

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/muster-agent/muster/appdef/shellwords"
	"github.com/muster-agent/muster/shim/login"
)

// Issued is a key for a client on another machine, which keeps it in a file, and what is typed there.
type Issued struct {
	File    string    `json:"file"` // name for the file
	Key     string    `json:"key"`  // the private half, as OpenSSH reads it
	Until   time.Time `json:"until"`
	Servers []server  `json:"servers"`
}

// server is the ssh server of an instance.
type server struct {
	Instance string `json:"instance"`
	Address  string `json:"address"`  // host:port
	HostKey  string `json:"host_key"` // its fingerprint, which a client asks about at its first login
	Command  string `json:"command"`  // what logs in by the file
}

// Issue makes a key, and permits it for the app's run until a time. It is kept nowhere.
func (o Options) Issue(ctx context.Context, app string, until time.Time) (Issued, error) {
	known, err := o.find(ctx, app)
	if err != nil {
		return Issued{}, err
	}
	if len(known.hosts) == 0 {
		return Issued{}, known.missing("")
	}
	out := Issued{File: "muster-" + app + ".key", Until: until, Servers: make([]server, len(known.hosts))}
	for i, h := range known.hosts {
		if out.Servers[i], err = serverOf(h, out.File); err != nil {
			return Issued{}, err
		}
	}
	private, public, err := login.NewKey(known.by)
	if err == nil {
		err = known.permitKey(ctx, public, until)
	}
	if err != nil {
		return Issued{}, err
	}
	out.Key = private
	return out, nil
}

func serverOf(h login.Host, file string) (server, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(h.Key))
	if err != nil {
		return server{}, fmt.Errorf("key of %s: %w", h.Name, err)
	}
	command := shellwords.Text([]string{
		"ssh", "-i", file, "-o", "IdentitiesOnly=yes", "-p", strconv.Itoa(h.Port), "muster@" + h.Address,
	})
	return server{
		Instance: h.Name, Address: net.JoinHostPort(h.Address, strconv.Itoa(h.Port)),
		HostKey: ssh.FingerprintSHA256(key), Command: command,
	}, nil
}
