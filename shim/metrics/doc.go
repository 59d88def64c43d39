// Package metrics turns what is known of instances and apps into the text format of Prometheus. In go an Instance, as
// its agent knows it, an App, as a listing has it, or the text of another agent; out comes one text. Pure.
//
// The table of metrics is kinds; doc/metrics.md has it. The room alone sees the libraries of Prometheus.
//
// Callers: the agent, for itself, and muster ui, for all apps.
package metrics
