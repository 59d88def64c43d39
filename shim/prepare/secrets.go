package prepare

import (
	"errors"
	"fmt"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox/container"
	"github.com/muster-agent/muster/shim/secret"
)

// secretsInside is where a process in a container finds its secrets as files.
const secretsInside = "/run/muster/secrets"

// MakeSecrets makes the folder for the secrets of an instance, which is empty until the process starts. Without a
// filesystem in memory there is none, and its absence is an error where secrets are given by files alone.
func (c *Container) MakeSecrets(p plan.Plan, in registry.Instance) error {
	if len(p.Process.Secrets) == 0 || p.Process.SecretForm == appdef.SecretsEnv {
		return nil
	}
	folder, err := secret.MakeFolder(c.AppID+"."+in.String(), c.secretOwner())
	switch {
	case errors.Is(err, secret.ErrNoMemory) && p.Process.SecretForm != appdef.SecretsFile:
		c.Log.Warn("secrets are not given as files", "err", err)
		return nil
	case err != nil:
		return fault.NotPermitted(fmt.Errorf("muster.secrets.form: %w; mount a tmpfs at /run or /dev/shm, or set "+
			"muster.secrets.form=env", err))
	}
	c.secrets = folder
	c.atEnd(func() {
		if err := folder.Remove(); err != nil {
			c.Log.Warn("secrets not removed", "folder", folder.Path, "err", err)
		}
	})
	return nil
}

// secretOwner is who may read the files: the process's user.
func (c *Container) secretOwner() *secret.Owner {
	if u := c.Owner(); u != nil {
		return &secret.Owner{UID: u.UID, GID: u.GID}
	}
	return nil
}

// WriteSecrets writes the values of secrets as files for the process, and says in which folder the process finds them;
// "": it gets none.
func (c *Container) WriteSecrets(p plan.Plan, values map[string]string) (folder string, err error) {
	if c.secrets == nil {
		return "", nil
	}
	folder = c.secrets.Path
	if p.Root.Kind != plan.RootHost { // a container
		folder = secretsInside
	}
	return folder, c.secrets.Write(values)
}

// secretMounts show a container the folder of its secrets.
func (c *Container) secretMounts() []container.Mount {
	if c.secrets == nil {
		return nil
	}
	return []container.Mount{{
		From: c.secrets.Path, To: secretsInside, ReadOnly: true, Options: append([]string{"noexec"}, inert...),
	}}
}
