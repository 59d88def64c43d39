// Package ui is the page that shows the apps of a registry or of this host in a browser: all apps, and one with its
// instances and their logs, as they change.
//
// A Server answers the page's files, which are embedded, and a JSON API, from what package apps finds out for each
// request: it keeps nothing but the sessions of browsers and the feeds that they follow. A feed looks once a second for
// all its followers, while it has some. Only who opened the one-time link has a session; requests for another host name
// are refused, and the page loads nothing from elsewhere. It reads, and changes nothing.
//
// Caller: muster ui.
package ui
