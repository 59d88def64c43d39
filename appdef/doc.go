// Package appdef holds App, the one model of a job that every dialect loads into, and its rules.
//
// It owns the App and its JSON, the table of muster's own keys, the placeholders, and the problems of a definition with
// their places. Values and fs.FS come in; an App or the full list of Problems goes out.
//
// It promises to be pure: no clock, no network, no os. Two agents with the same digest run the same job. Texts in an
// App keep their placeholders (`${USER}`, `${ps_HOST}`, `${@//site/global/x}`) until Expand resolves them where the
// values are known; so the digest is the same for every user and host.
//
// settle.go sets the defaults that hold before keys are read. Memory and cores have theirs in draft.go, and each
// dialect its own in its room (slider/resources.go, pai/role.go, hbox/roles.go); grace and /dev/shm depend on the
// launcher and the memory: shim/plan/gang.go and limits.go. The table of keys (*keys.go) has the texts that the manual
// prints.
//
// The dialects below (slider, pai, hbox) build an App with Settle and Validate; shim/plan turns it into plans.
package appdef
