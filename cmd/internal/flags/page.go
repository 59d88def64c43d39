package flags

import (
	"net/url"
	"os"
	"strings"

	"github.com/muster-agent/muster/registry"
)

// PageOf is Page of an app in that registry. A registry at a socket serves one host, as that of a muster run by itself
// does: the cluster's page does not ask it, so there is none.
func PageOf(app string, at registry.Address) string {
	if _, own := at.Socket(); own {
		return ""
	}
	return Page(app)
}

// Page is where the cluster's page, whose address is in MUSTER_UI, shows an app; "": there is none, or that is no URL.
func Page(app string) string {
	base, err := url.Parse(os.Getenv("MUSTER_UI"))
	if err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http" {
		return ""
	}
	return strings.TrimSuffix(base.String(), "/") + "/apps/" + url.PathEscape(app)
}
