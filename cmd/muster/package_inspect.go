package main

import (
	"github.com/muster-agent/muster/appdef"
)

// packageComponent is what a package says of one component.
type packageComponent struct {
	Name      string `json:"name"`
	Instances int    `json:"instances"`
	Role      string `json:"role"`
	MemoryMB  int    `json:"memory_mb"` // -1: as much as the launcher grants
	Command   string `json:"command"`   // where its command is written: muster.command, commands, commandScript; empty: the framework's
}

func packageComponents(app appdef.App) []packageComponent {
	out := []packageComponent{}
	for _, c := range app.Components {
		out = append(out, packageComponent{
			Name: c.Name, Instances: c.Instances, Role: string(c.Settings.Role), MemoryMB: c.Limits.MemoryMB, Command: c.Settings.CommandFrom,
		})
	}
	return out
}
