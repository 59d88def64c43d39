package shim

import (
	"fmt"
	"os"
	"os/user"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/openapp"
	"github.com/muster-agent/muster/shim/ownfolder"
	"github.com/muster-agent/muster/shim/plan"
)

// signedPath is the PATH of an agent, and of its process, where packages must be signed.
const signedPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// admit refuses options that change what a signed package runs, and drops variables that do. Whoever starts the agent
// chooses its environment: with another PATH, `python3` of a signed command is another program.
func (o Options) admit() error {
	if !o.Policy.Packages.RequireSignature {
		return nil
	}
	if err := openapp.AdmitEnv(o.Policy, o.Env, os.Environ()); err != nil {
		return err
	}
	if err := o.admitHadoop(); err != nil {
		return err
	}
	for name, value := range launcher.Environ(os.Environ()) {
		if keepsSigned(name, value) {
			continue
		}
		if err := os.Unsetenv(name); err != nil {
			return exit.With(exit.Internal, fmt.Errorf("drop variable %s: %w", name, err))
		}
	}
	return exit.With(exit.Internal, os.Setenv("PATH", signedPath))
}

// admitHadoop refuses a configuration of Hadoop that others than root can write: it names the Java and the classes that
// processes load.
func (o Options) admitHadoop() error {
	conf := o.Hadoop.Conf
	if conf == "" {
		return nil
	}
	err := ownfolder.Trusted(conf, 0)
	if err == nil {
		return nil
	}
	return exit.With(exit.Forbidden, fmt.Errorf("the policy of this host (%s) takes what runs from signed packages "+
		"only, and refuses --hadoop-conf %s: it names Java and classes, and others than root could write it: %w; name "+
		"a folder that belongs to root and that only root can write or replace", o.Policy.File, conf, err))
}

var (
	plainWord    = regexp.MustCompile(`^[A-Za-z0-9_.,:@/+-]*$`)
	plainAddress = regexp.MustCompile(`^[A-Za-z0-9\[][A-Za-z0-9._:,\[\]-]*$`)
)

// keepsSigned tells which variables an agent keeps where packages must be signed: those that its process does not get,
// and those that name nothing that runs.
func keepsSigned(name, value string) bool {
	switch {
	case slices.Contains(appdef.ClientNames(), name):
		return plainAddress.MatchString(value)
	case strings.HasPrefix(name, "LD_"):
		return false
	case !launcher.Inherited(name), strings.HasSuffix(strings.ToLower(name), "_proxy"):
		return true
	case slices.Contains([]string{"HOME", "KRB5CCNAME"}, name): // HOME is the agent's own; its process gets another
		return true
	case slices.Contains([]string{
		"TERM", "TZ", "LANG", "USER", "LOGNAME", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES",
		plan.TokensVariable,
	}, name), strings.HasPrefix(name, "LC_"):
		return plainWord.MatchString(value)
	}
	return openapp.AllowsEnv(name, value)
}

// ownHome is the home of the agent's user as the host's accounts have it. Python and shells load files from HOME.
func ownHome() string {
	u, err := user.LookupId(strconv.Itoa(os.Geteuid()))
	if err != nil {
		return "/"
	}
	return u.HomeDir
}
