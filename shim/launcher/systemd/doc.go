// Package systemd is systemd, on this host alone.
//
// Agents says how an agent recognises that it was started by it and reads what systemd gives a service (detect.go),
// and what it does when an agent ends (answer.go). Jobs writes a template unit, a target and the limits of each
// instance (render.go). The room is pure: what brings a job to the launcher and follows it there is room client
// below.
//
// It owns nothing but its texts. It promises that the same arguments give the same bytes. Room known calls it.
//
// How long the launcher waits between its stop signal and SIGKILL is KillWindow of Agents; shim/plan takes the grace of
// a process from it.
package systemd
