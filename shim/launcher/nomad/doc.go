// Package nomad is HashiCorp Nomad.
//
// Agents says how an agent recognises that it was started by it and reads what a Nomad client sets (detect.go), and
// what it does when an agent ends (answer.go). Jobs writes batch jobs as HCL and as JSON (render.go, hcl.go). The
// room is pure: what brings a job to the launcher and follows it there is room client below.
//
// It owns nothing but its texts. It promises that the same arguments give the same bytes. Room known calls it.
package nomad
