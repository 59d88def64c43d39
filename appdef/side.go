package appdef

import (
	"slices"
	"strings"
)

// Side processes that a framework needs: they run beside the first chief or worker.
const (
	SideScheduler  = "scheduler"  // of DMLC's parameter servers: the app's own command in another role
	SideTracker    = "tracker"    // of rabit: xgboost's workers meet there
	SideRendezvous = "rendezvous" // of Gloo: Horovod's processes meet there without mpirun
)

// HorovodGloo is Horovod without mpirun: its processes meet by Gloo.
const HorovodGloo = "horovod-gloo"

// FrameworkSide is the side process that a framework needs; empty: none.
func FrameworkSide(framework string) string {
	switch framework {
	case "mxnet", "xflow":
		return SideScheduler
	case "xgboost":
		return SideTracker
	case HorovodGloo:
		return SideRendezvous
	}
	return ""
}

// sideDict is the dictionary in which the port of a side process is found: `${site.side.NAME}`.
const sideDict = "side"

// SidePort is the name of a side process's port, in plans and in rows of the roster.
func SidePort(side string) string { return sideDict + "." + side }

// SideInnerPort is the name of the port at which a side process listens behind its key.
func SideInnerPort(side string) string { return SidePort(side) + ".inner" }

// CutSidePort is the side process of a port, by the port's name.
func CutSidePort(port string) (side string, ok bool) { return strings.CutPrefix(port, sideDict+".") }

// portBeside tells whether a side process of the component may have a port of that name; -1: of any component.
func (v *validation) portBeside(component int, side string) bool {
	components := v.app.Components
	if component >= 0 {
		components = components[component : component+1]
	}
	return side == FrameworkSide(v.app.Settings.Framework) || slices.ContainsFunc(components, func(c Component) bool {
		return slices.ContainsFunc(c.Settings.Sides, func(s Side) bool {
			return s.Port && s.Name == side || s.Key && SideInnerPort(s.Name) == SidePort(side)
		})
	})
}
