// Package plan turns an App and what the launcher granted into a Plan: everything that one agent will do, decided
// beforehand.
//
// It owns the plan's JSON, the allocation of ports and limits to an instance, and all decisions that depend on the App
// and the host's facts alone. It promises to be pure: no clock, no network, no os; `muster plan` prints the same bytes
// that the golden files hold.
//
// The files stand in layers, and no file uses a layer above its own:
//
//   - plan.go, stageitem.go, dialect.go, commands.go: the values. token.go, location.go, format.go, cluster.go: their
//     words.
//   - resolve.go, endpoint.go, start.go: what folders, ports and a roster add to a plan that runs.
//   - request.go, needs.go, rank.go, gang.go: the request, and what follows from the App alone.
//   - builder.go and text.go, then one file per part of the plan (root.go, data.go, command.go, …), then build.go.
//
// Where it is decided: memory, its growth and what a launcher is asked for in limits.go; a process's grace and the
// restart budgets in gang.go; which ports an instance has in needs.go.
//
// Every agent calls NeedsOf, Build, Resolve and Finish, in this order; `muster plan` and `validate` call Build.
package plan
