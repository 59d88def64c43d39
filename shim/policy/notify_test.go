package policy

import (
	"path/filepath"
	"testing"
	"time"
)

func TestNotify(t *testing.T) {
	dir := t.TempDir()
	program, plain := filepath.Join(dir, "tell"), filepath.Join(dir, "plain")
	writeMode(t, program, "#!/bin/sh\n", 0o755)
	writeMode(t, plain, "", 0o644)
	open := filepath.Join(dir, "open")
	writeMode(t, open, "", 0o777)
	for name, tt := range map[string]struct{ fields, want, to string }{
		"a command":        {`"command":["` + program + `","-v"]`, "", program},
		"a URL":            {`"url":"https://hooks.lab:8443/T0/secret","header_file":"/etc/muster/h","timeout":"3s"`, "", "https://hooks.lab:8443"},
		"this host":        {`"url":"http://[::1]:80/x"`, "", "http://[::1]:80"},
		"nothing":          {``, `notify: got neither command nor url, want one: {"command": ["/usr/local/bin/tell"]}`, ""},
		"both":             {`"command":["` + program + `"],"url":"https://a/b"`, "notify.url: got both command and url, want one of them", ""},
		"no absolute path": {`"command":["tell"]`, `notify.command[0]: got "tell", want the absolute path of a program`, ""},
		"nowhere":          {`"command":["/nowhere/tell"]`, "notify.command[0]: ", ""},
		"no program":       {`"command":["` + plain + `"]`, "notify.command[0]: " + plain + " is no program: chmod +x makes it one", ""},
		"anybody's":        {`"command":["` + open + `"]`, "notify.command[0]: ", ""},
		"no list":          {`"command":"` + program + `"`, `notify.command: got the text "` + program + `", want a list of texts`, ""},
		"plain http":       {`"url":"http://hooks.lab/secret"`, "notify.url: got http:// to hooks.lab, which everybody on the way could read, want https://HOST/PATH, or http:// to this host itself", ""},
		"another scheme":   {`"url":"ftp://a/secret"`, `notify.url: got "ftp://", want https://HOST/PATH`, ""},
		"no URL":           {`"url":"hooks"`, "notify.url: got what is no URL, want https://HOST/PATH", ""},
		"a user":           {`"url":"https://u:secret@a/b"`, "notify.url: got a user in the URL: put it into header_file", ""},
		"an event":         {`"url":"https://a/b","events":["verdict","fail"]`, `notify.events[1]: no event is called "fail", want one of start, failure, restart, silence, verdict`, ""},
		"a long time":      {`"url":"https://a/b","timeout":"1h"`, `notify.timeout: got "1h", want a time up to 1m0s, such as 10s`, ""},
		"a slip":           {`"uri":"https://a/b"`, "notify.uri: no such field, want one of command, url", ""},
		"a CA and none":    {`"url":"https://a/b","ca_file":"/nowhere/ca"`, "notify.ca_file: ", ""},
		"a command's CA":   {`"command":["` + program + `"],"ca_file":"/a"`, "notify.ca_file: got /a beside a command, want it with a url alone", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := readText(t, `,"notify":{`+tt.fields+`}`, tt.want)
			if tt.want == "" && p.Notify.To() != tt.to {
				t.Errorf("got %s, want %s", p.Notify.To(), tt.to)
			}
		})
	}
	if p := readText(t, ``, ""); p.Notify.Wants("verdict") {
		t.Error("nobody is named, and is told")
	}
	p := readText(t, `,"notify":{"url":"https://a/b","events":["verdict"]}`, "")
	if !p.Notify.Wants("verdict") || p.Notify.Wants("start") || p.Notify.Limit != 10*time.Second {
		t.Errorf("got %+v", p.Notify)
	}
}
