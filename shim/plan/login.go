package plan

import (
	"cmp"

	"github.com/muster-agent/muster/appdef"
)

// loginServer is the ssh server of an instance.
type loginServer struct {
	Port     string `json:"port"`               // the name of its port
	Password bool   `json:"password,omitempty"` // it also takes passwords
}

// loginPort is the name of the port of the ssh server where the configuration has none of its own.
const loginPort = "ssh"

// labelledPort is the port of PAI's label ssh.
const labelledPort = "port.ssh"

// LoginPort is the number of an instance's ssh server among its ports; 0: it has none.
func LoginPort(ports map[string]int) int { return cmp.Or(ports[loginPort], ports[labelledPort]) }

// Files of an instance with a login, under its folder.
const (
	// LoginFolder is where a client of ssh in the container finds the gang's instances.
	LoginFolder = "app/ssh"
	// LoginKey is the key by which it logs in.
	LoginKey = LoginFolder + "/key"
	// LoginPrograms is a folder of PATH: ssh, scp and sftp of the container, with that configuration.
	LoginPrograms = LoginFolder + "/bin"
)

// login is the instance's part; nil if nobody logs in.
func (b *builder) login() *loginServer {
	if port := loginPortOf(b.app, b.component.Name, b.component.Settings.PortSettings); port != "" {
		return &loginServer{Port: port, Password: b.app.Settings.HBox.GivesLogin()}
	}
	return nil
}

// loginPortOf is the port of PAI's label ssh, else a port of its own; "": nobody logs in.
func loginPortOf(app *appdef.App, component string, s appdef.PortSettings) string {
	labelled := app.Dialect == "pai" && asksFor(app, component, labelledPort)
	switch {
	case s.SSH == "false", s.SSH == "" && !labelled && !app.Settings.HBox.GivesLogin():
		return ""
	case labelled:
		return labelledPort
	}
	return loginPort
}

// loginPorts are the ports of an instance's ssh server, except that which the configuration requests itself.
func loginPorts(app *appdef.App, component string) []Port {
	c := app.Component(component)
	if loginPortOf(app, component, c.Settings.PortSettings) != loginPort {
		return nil
	}
	return []Port{{Name: loginPort, Allowed: allowedPorts(app, c)}}
}
