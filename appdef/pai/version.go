package pai

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

func versions() []string { return []string{appdef.PAI05, appdef.PAI014, appdef.PAI1} }

// versionOf decides the version: --set, then --pai-version, then the file's own setting (muster.pai.version in the
// extras), then what the file shows. PAI 1 reads the same fields as 0.14, so it must be set.
func (l *loading) versionOf(c cursor) {
	asked, flag := l.options.Version, "--pai-version"
	for _, set := range l.options.Set {
		if text, ok := strings.CutPrefix(strings.TrimPrefix(set, "global:"), versionKey+"="); ok {
			asked, flag = text, "--set"
		}
	}
	own, inExtras := ownVersion(c)
	switch {
	case slices.Contains(versions(), asked):
		l.version = asked
		l.draft.Set("", versionKey, asked, appdef.Place{File: flag})
		return
	case asked != "" && flag == "--pai-version": // a wrong --set is reported with the other keys
		p := appdef.Place{File: flag}.Problem(appdef.Quote(asked), strings.Join(versions(), ", "), "")
		p.Usage = true
		l.found = append(l.found, p)
	}
	if asked == "" && inExtras && slices.Contains(versions(), own.Text) {
		l.version = own.Text
		l.draft.Set("", versionKey, own.Text, own.place())
		return
	}
	l.sign = signOf(c)
	l.version = l.sign.version
	l.draft.Set("", versionKey, l.version, l.sign.at)
}

func ownVersion(c cursor) (cursor, bool) {
	extras, ok := c.get("extras")
	if !ok {
		return cursor{}, false
	}
	return extras.get(versionKey)
}

// sign is what in a job file shows its version.
type sign struct {
	version, why string
	at           appdef.Place
	none         bool // nothing does
}

// The variables that tasks of one generation find and those of the other do not.
var (
	names014 = regexp.MustCompile(`\bPAI_(?:HOST_IP|PORT_LIST|TASK_ROLE_TASK_COUNT|RESOURCE|MIN_FAILED_TASK_COUNT|` +
		`MIN_SUCCEEDED_TASK_COUNT)\w*`)
	names05 = regexp.MustCompile(`\b(?:QIZHI_\w+|PAI_KILL_ALL_ON_COMPLETED_TASK_NUM|PAI_TASK_ROLE_[0-9]+_HOST_LIST)\b`)
)

// signOf finds the first sign. One of 0.14 comes first: 0.5 refuses such a file, or its tasks lack the variable, while
// 0.14 ignores killAllOnCompletedTaskNumber. Without a sign the job is of 0.14, under which no task ends another: under
// 0.5 the first that succeeds ends all (decision 0045).
func signOf(c cursor) sign {
	roles := c.rolesOf()
	objects := append([]cursor{c}, roles...)
	for _, keys := range []struct {
		objects []cursor
		names   []string
	}{
		{objects[:1], []string{"jobEnvs", "extras", "tmp"}},
		{roles, []string{"shmMB", "minFailedTaskCount", "minSucceededTaskCount", "storageGB"}},
	} {
		for _, name := range keys.names {
			for _, o := range keys.objects {
				if o.Member(name) != nil {
					why := "it has " + name + ", which 0.5 does not know"
					return sign{version: appdef.PAI014, why: why, at: o.at(name)}
				}
			}
		}
	}
	if s, ok := c.named(objects, names014, appdef.PAI014, ", a variable that 0.5 does not have"); ok {
		return s
	}
	const killAll = "killAllOnCompletedTaskNumber"
	if c.Member(killAll) != nil {
		return sign{
			version: appdef.PAI05, why: "it has " + killAll + ", which later versions ignore", at: c.at(killAll),
		}
	}
	if s, ok := c.named(objects, names05, appdef.PAI05, ", a name that later versions do not have"); ok {
		return s
	}
	if name, ok := c.get("jobName"); ok && strings.Contains(name.Text, "~") {
		return sign{version: appdef.PAI05, why: "its name has ~, which later versions refuse", at: name.place()}
	}
	for _, role := range roles {
		if name, ok := role.get("name"); ok && strings.Contains(name.Text, "-") {
			return sign{
				version: appdef.PAI05, why: "a task role has -, which later versions refuse", at: name.place(),
			}
		}
	}
	return sign{version: appdef.PAI014, why: "nothing in it is of one version alone", at: c.place(), none: true}
}

// named finds a name in the texts in which PAI's names have a meaning: paths and commands.
func (c cursor) named(objects []cursor, names *regexp.Regexp, version, why string) (sign, bool) {
	for _, o := range objects {
		for _, field := range []string{"authFile", "dataDir", "outputDir", "codeDir", "command"} {
			if m, ok := o.get(field); ok && m.Kind == appdef.JSONText {
				if name := names.FindString(m.Text); name != "" {
					return sign{version: version, why: "it uses " + name + why, at: m.place()}, true
				}
			}
		}
	}
	return sign{}, false
}

// rolesOf are the task roles, without a word about what is wrong with them.
func (c cursor) rolesOf() []cursor {
	list, ok := c.get("taskRoles")
	if !ok {
		return nil
	}
	roles := make([]cursor, len(list.Items))
	for i, item := range list.Items {
		roles[i] = cursor{JSONNode: item, l: c.l, pointer: list.pointer + appdef.Pointer(strconv.Itoa(i))}
	}
	return roles
}

// undecided warns about a job that each version would end at another time, and that does not show its own.
func (l *loading) undecided(c cursor) {
	if l.sign.none && l.tasks > 1 {
		c.warnAt("taskRoles", appdef.Counted(l.tasks, "task")+" and nothing that tells the version of PAI",
			"--pai-version 0.5, 0.14 or 1",
			"it is read as 0.14: the job succeeds when all tasks have; under 0.5 the first task that succeeds "+
				"ends the others")
	}
}
