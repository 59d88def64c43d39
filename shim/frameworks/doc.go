// Package frameworks turns a plan and a roster into what a framework expects of its cluster: environment variables and
// files.
//
// It owns the variables of each framework and of the dialects PAI and HBox: one file per framework, registered in one
// table, so that deleting a framework deletes its file and its line. The variables of every process (MUSTER_*) belong
// to plan.Finish.
//
// It promises to be pure: the same plan and roster give the same variables, which golden files hold. A value of the
// definition wins over one of its own. It touches neither files nor the network.
//
// shim/process calls it at each start, shim/dryrun for `muster plan --roster`.
package frameworks
