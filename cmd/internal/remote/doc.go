// Package remote asks a page of muster ui, from a host that reaches neither the registry of its apps nor their agents.
//
// A client is a user of one page, by a token, and answers what package apps asks of a registry and of agents; word and
// the types beside it are what both ends send. It shows its token to the page's own address alone, follows no redirect,
// and takes bounded answers.
//
// Callers: the flags of verbs that take --ui, and the page's server.
package remote
