// Package sheet describes a plan for people, component by component, with the source of each value.
//
// An App and the plans of its components come in, text goes out. A value without a source is muster's default.
//
// It owns the layout of the text alone. It is pure and decides nothing: everything it prints is in the plan.
//
// Caller: `muster explain`.
package sheet
