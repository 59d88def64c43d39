package frameworks

import (
	"maps"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// teller makes the variables and files of one framework.
type teller func(plan.Plan, registry.Roster) (env, files map[string]string)

// tellers are the frameworks that need more than MUSTER_*, by their names in plan.Plan.Framework.
func tellers() map[string]teller {
	return map[string]teller{
		"tensorflow":    tensorflow,
		"tensor2tensor": tensor2tensor,
		"cntk":          cntk,
		"horovod":       horovod,
		"horovod-gloo":  horovodGloo,
		"mpi":           mpi,
		"pytorch":       pytorch,
		"jax":           jax,
		"mxnet":         mxnet,
		"xflow":         xflow,
		"xgboost":       xgboost,
		"lightgbm":      lightgbm,
		"lightlda":      lightlda,
		"xdl":           xdl,
		"tony":          tony,
	}
}

// Env is the variables and the files (by path under the instance's folder) that the plan's framework expects for this
// roster, and those of the dialect in which the job was written. plan.Finish calls it and adds what every process gets.
func Env(p plan.Plan, r registry.Roster) (env, files map[string]string) {
	env, files = none()
	say := func(t teller) {
		more, beside := t(p, r)
		maps.Copy(env, more)
		maps.Copy(files, beside)
	}
	if p.PAI != nil {
		say(pai)
	}
	if t, ok := tellers()[p.Framework]; ok {
		say(t)
	}
	if p.HBox != nil {
		say(hbox)
	}
	hadoop(p, env)
	hboxJarsLast(p, env)
	if p.PAI != nil { // the job file's own variables win
		maps.Copy(env, p.PAI.Env)
	}
	return env, files
}
