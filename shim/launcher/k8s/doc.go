// Package k8s is Kubernetes, with JobSet or without.
//
// Agents says how an agent recognises that it was started by it and reads what an indexed Job gives its pods
// (detect.go), and what it does when an agent ends (answer.go). Jobs writes JobSets and indexed Jobs (render.go). The
// room is pure: what brings a job to the launcher and follows it there is room client below.
//
// It owns nothing but its texts. It promises that the same arguments give the same bytes. Room known calls it.
//
// How long the launcher waits between its stop signal and SIGKILL is KillWindow of Agents; shim/plan takes the grace of
// a process from it.
package k8s
