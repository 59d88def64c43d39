package plan

import (
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// placeOf is where a part of the App was written: the part, else the nearest one around it.
func placeOf(app *appdef.App, parts ...string) appdef.Place {
	for n := len(parts); n > 0; n-- {
		if p, ok := app.Places[appdef.Pointer(parts[:n]...)]; ok {
			return p
		}
	}
	return appdef.Place{File: "app", Pointer: appdef.Pointer(parts...)}
}

// keyPlace is where a key of appConfig or resources was written for a component: in its own section,
// else in the global one.
func keyPlace(app *appdef.App, component int, key string) (appdef.Place, bool) {
	if strings.ContainsAny(key, "~/") {
		key = strings.TrimPrefix(appdef.Pointer(key), "/")
	}
	own := "/components/" + strconv.Itoa(component)
	for _, section := range [...]string{own + "/config/", own + "/resources/", "/config/", "/resources/"} {
		if p, ok := app.Places[section+key]; ok {
			return p, true
		}
	}
	return appdef.Place{}, false
}
