package slider

import (
	"maps"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// envPrefix begins Slider's keys of a container's variables (RoleKeys.ENV_PREFIX), ownEnvPrefix muster's.
const (
	envPrefix    = "env."
	ownEnvPrefix = "muster.env."
)

// variables turns env.NAME into muster.env.NAME of the same level, unless that is written there.
func variables(src appdef.Sources) {
	for _, section := range append(slices.Collect(maps.Values(src.ComponentConfig)), src.Config) {
		for _, key := range slices.Collect(maps.Keys(section)) {
			name, ok := strings.CutPrefix(key, envPrefix)
			if _, own := section[ownEnvPrefix+name]; ok && name != "" && !own {
				section[ownEnvPrefix+name] = section[key]
			}
		}
	}
}
