package hbox

import (
	"strconv"
)

const (
	minFailedKey = "muster.complete.minFailed"
	totalKey     = "muster.complete.total.minFailed"
)

// ends decides when failures fail the job. Of single processes HBox tolerates a share of failures. In a type in which
// any failure stops the others, the first failure fails the job here: HBox's own report depends on which processes had
// ended before. An explicit share holds for these types too.
func (j *job) ends() {
	v, named := j.confs[confRate]
	asked := named && !ofSite(v.Place) // an administrator has no single job in mind
	rate := 0.5
	if named {
		f, ok := j.share(v)
		if !ok {
			return
		}
		rate = f
	}
	if j.kind.strict && !j.single || j.kind.allReduce && !asked {
		if asked {
			j.warn(v.Place, v.Text+" with the app type "+j.kind.name, "no value",
				"any failure fails this job, as in HBox")
		}
		return
	}
	at := place("--app-type")
	if named {
		at = v.Place
	}
	if rate == 0 {
		return // any failure exceeds the share
	}
	for _, r := range j.roles {
		if r.name != roleEvaluator && !j.said(r.name, minFailedKey) {
			j.draft.SetNull(r.name, minFailedKey, at)
			j.from(r.name, minFailedKey, at)
		}
	}
	if rate <= 1 {
		j.global(totalKey, percent(rate), at)
	}
}

// percent prints a share without the digits of binary fractions.
func percent(share float64) string { return strconv.FormatFloat(share*100, 'g', 12, 64) + "%" }

// times sets the attempts of the whole job and the timeouts.
func (j *job) times() {
	if v, ok := j.confs[confAttempts]; ok {
		if n := j.number(v, 1, 1); n > 1 {
			j.global("muster.retry", strconv.Itoa(n-1), v.Place)
		}
	}
	for conf, key := range map[string]string{confTimeout: "muster.timeout", confStageTimeout: "muster.stage.timeout"} {
		if text, at := j.milliseconds(conf); text != "" {
			j.global(key, text, at)
		}
	}
}
