package hadoop

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Up starts a cluster under dir that stays when this process ends, or what of it does not run. Options hold when it is
// made; afterwards it keeps them.
func Up(dir string, o Options) (*Cluster, error) {
	c, err := open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		c, err = lay(dir, o)
	}
	if err != nil {
		return nil, err
	}
	return c, c.up()
}

// Open is a cluster that Up made.
func Open(dir string) (*Cluster, error) {
	c, err := open(dir)
	if err != nil {
		return nil, fmt.Errorf("no HDFS in %s: %w", dir, err)
	}
	c.options.DataNodes = len(c.ports.Datas)
	c.ConfDir, c.URI = filepath.Join(dir, "conf"), c.uri()
	if c.options.Kerberos {
		c.kdcDaemon = c.kdc().daemon(c)
	}
	c.define()
	return c, nil
}

// Down ends a cluster that Up made; its data stays.
func Down(dir string) error {
	c, err := Open(dir)
	if err != nil {
		return err
	}
	for _, d := range c.daemons() {
		if d.adopt() {
			err = errors.Join(err, d.end(syscall.SIGTERM))
		}
		_ = os.Remove(d.pidFile)
	}
	return err
}

// made is lab.json: what a cluster is.
type made struct {
	Options Options
	Ports   ports
}

func lay(dir string, o Options) (*Cluster, error) {
	h, err := find()
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: dir, options: o, home: h, outlives: true}
	if err := c.claim(); err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(made{o, c.ports}, "", "  ")
	if err != nil {
		return nil, err
	}
	return c, os.WriteFile(filepath.Join(dir, "lab.json"), append(b, '\n'), 0o644)
}

func open(dir string) (*Cluster, error) {
	h, err := find()
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(filepath.Join(dir, "lab.json"))
	if err != nil {
		return nil, err
	}
	var m made
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, "lab.json"), err)
	}
	return &Cluster{Dir: dir, options: m.Options, ports: m.Ports, home: h, outlives: true}, nil
}
