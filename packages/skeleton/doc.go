// Package skeleton writes the app packages that `muster package init` begins with: one folder of templates for each
// kind (none, script, tensorflow), and the packages of packages/catalog for other frameworks.
//
// A kind, a name and a folder come in; files go out. In a template the name stands in place of @NAME@, in a package of
// the catalog in place of the package's own name.
//
// It promises to write into a new or empty folder only, and to replace no file. It owns nothing but the templates.
// Caller: `muster package init`.
package skeleton
