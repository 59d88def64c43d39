package login

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef/shellwords"
)

// Host is an instance as a client of ssh finds it.
type Host struct {
	Name    string // worker-0
	Aliases []string
	Address string
	Port    int
	Key     string // its public key, as a line of known_hosts without the host
}

// Names of the files in a client's folder.
const (
	ConfigFile = "config"
	knownHosts = "known_hosts"
	KeyFile    = "key"
)

// Files are the configuration of OpenSSH's client and the pinned keys of hosts, by their names in the folder dir, where
// the key of the client lies too.
func Files(dir string, hosts []Host) map[string]string {
	var config, known strings.Builder
	for _, h := range hosts {
		names := strings.Join(append([]string{h.Name}, h.Aliases...), " ")
		fmt.Fprintf(&config, "Host %s\n", names)
		for _, option := range [][2]string{
			{"HostName", h.Address},
			{"Port", strconv.Itoa(h.Port)},
			{"User", "muster"}, // a session has the process's user whatever the name is
			{"HostKeyAlias", h.Name},
			{"IdentityFile", quoted(path.Join(dir, KeyFile))},
			{"IdentitiesOnly", "yes"},
			{"UserKnownHostsFile", quoted(path.Join(dir, knownHosts))},
			{"GlobalKnownHostsFile", "/dev/null"},
			{"StrictHostKeyChecking", "yes"},
			{"PreferredAuthentications", "publickey"},
		} {
			fmt.Fprintf(&config, "  %s %s\n", option[0], option[1])
		}
		fmt.Fprintf(&known, "%s %s\n", h.Name, h.Key)
	}
	return map[string]string{ConfigFile: config.String(), knownHosts: known.String()}
}

// quoted is a path in ssh_config(5).
func quoted(path string) string { return `"` + strings.ReplaceAll(path, `"`, `\"`) + `"` }

// HostOf is an instance's Host, with the key that its server has.
func HostOf(token, app, instance, address string, port int) (Host, error) {
	key, err := HostKey(token, app, instance)
	if err != nil {
		return Host{}, err
	}
	return Host{Name: instance, Address: address, Port: port, Key: line(key.PublicKey())}, nil
}

// Wrapper is a script with the name of OpenSSH's ssh, scp or sftp, for a folder of PATH. It runs the program of that
// name behind its own folder: with the configuration in dir where a word names one of its hosts, so that other hosts
// are reached as without it.
func Wrapper(dir string) string { return strings.ReplaceAll(wrapper, "DIR", shellwords.Word(dir)) }

const wrapper = `#!/bin/sh
dir=DIR
name=${0##*/}
set -f
real=
before=$IFS
IFS=:
for at in $PATH; do
	if [ "$at" != "$dir/bin" ] && [ -x "$at/$name" ] && [ ! -d "$at/$name" ]; then
		real=$at/$name
		break
	fi
done
IFS=$before
if [ -z "$real" ]; then
	echo "$name: no $name in PATH: install OpenSSH's client in the image or on the host" >&2
	exit 127
fi
for word; do
	host=${word##*@}
	host=${host%%:*}
	while read -r key value _; do
		if [ "$key" = Host ] && [ "$value" = "$host" ]; then
			exec "$real" -F "$dir/config" "$@"
		fi
	done <"$dir/config"
done
exec "$real" "$@"
`
