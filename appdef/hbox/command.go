package hbox

import (
	"regexp"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/shellwords"
)

// durationForm is a duration that both sleep(1) and HBox can read.
var durationForm = regexp.MustCompile(`^\d+(\.\d+)?[smhd]?$`)

// forever is sleep's argument for the duration 0: HBox's own number.
const forever = "32767d"

// command sets what every process runs: the words behind the options, else --hbox-cmd. HBox runs no shell, so each word
// reaches the program unchanged.
func (j *job) command() {
	v, given := j.value("hbox-cmd")
	words, at := j.line.command, place("command line")
	if given && len(words) > 0 {
		j.warn(at, "a command behind the options, "+appdef.Quote(words[0])+", beside --hbox-cmd", "one of the two",
			"it runs in place of --hbox-cmd; does the last line of the options end in a backslash?")
	} else if given {
		words, at = strings.Fields(v.Text), v.Place
	}
	text := shellwords.Text(words)
	switch {
	case j.kind.lives():
		text = j.life(len(words) > 0, at)
	case len(words) == 0 && j.everyRole("muster.command"):
		return
	case len(words) == 0:
		j.bad(at, "no command", "it behind the options, or --hbox-cmd", "")
		text = ":" // else the problem would be repeated for each role
	}
	text = j.paths(text)
	for _, r := range j.roles {
		j.own(r.name, "muster.command", text, at)
		if j.kind.name == "DIGITS" {
			j.digits(r)
		}
	}
}

// digits runs the server beside the wait for the job's end: one that dies, or does not answer, is started again. HBox
// does not see it.
func (j *job) digits(r role) {
	const key = "muster.side." + digitsSide
	at := place("--app-type")
	j.own(r.name, key, j.paths(`exec python -m digits -p "$MUSTER_PORT_SIDE_DIGITS"`), at)
	j.own(r.name, key+".port", "true", at)
	j.own(r.name, key+".http", "true", at)
	address := "${" + r.name + "_HOST}:${site." + appdef.SidePort(digitsSide) + "}"
	j.draft.Export(r.name, "host_port", address)
	j.draft.Export(r.name, "url", "http://"+address)
}

const digitsSide = "digits"

// everyRole tells whether --conf muster.X sets a key of all roles.
func (j *job) everyRole(key string) bool {
	for _, r := range j.roles {
		if !j.said(r.name, key) {
			return false
		}
	}
	return true
}

// life is the command of a type without one of its own.
func (j *job) life(commanded bool, at appdef.Place) string {
	if commanded {
		j.warn(at, "a command with the app type "+j.kind.name, "no command",
			"it is not run: the job waits for its duration")
	}
	length := "1d"
	if v, ok := j.value("duration"); ok {
		length = strings.TrimSpace(v.Text)
		if !durationForm.MatchString(length) {
			j.bad(v.Place, appdef.Quote(v.Text), "a number with s, m, h or d behind it, or 0", "")
			length = "1d"
		}
	}
	if strings.Trim(strings.TrimRight(length, "smhd"), "0.") == "" {
		length = forever
	}
	return "sleep " + length
}

// paths puts the user's additions to search paths before the command.
func (j *job) paths(text string) string {
	before := ""
	if path := j.text("user-path"); path != "" {
		before += pathPrefix + shellwords.Word(path) + "; "
	}
	libraries := j.text("user-ldlibrarypath")
	for _, conf := range []string{confMPILibraries, confHorovodLibs} {
		if v, ok := j.confs[conf]; ok && j.kind.mpi() {
			libraries = strings.Trim(strings.TrimSpace(v.Text)+":"+libraries, ":")
		}
	}
	if libraries != "" {
		before += libraryPrefix + shellwords.Word(libraries) + librarySuffix + "; "
	}
	if before != "" && !j.kind.lives() {
		text = "exec " + text
	}
	return before + text
}

const (
	pathPrefix    = `export PATH="$PATH":`
	libraryPrefix = `export LD_LIBRARY_PATH=`
	librarySuffix = `"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"`
)
