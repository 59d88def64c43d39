package ports

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// portRange is a span of port numbers, both ends included.
type portRange struct{ From, To int }

// Ranges are spans as they were given; they may overlap.
type Ranges []portRange

// Default is where ports come from when nobody says otherwise.
var Default = portRange{appdef.FirstPort, appdef.LastPort}

// ParseRanges reads `20000-29999` or a list such as `48000, 49000, 50001-50010`. It also reads the
// kernel's ip_local_reserved_ports.
func ParseRanges(text string) (Ranges, error) {
	var ranges Ranges
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		from, to, span := strings.Cut(part, "-")
		if !span {
			to = from
		}
		r := portRange{number(from), number(to)}
		if r.From == 0 || r.To == 0 || r.From > r.To {
			return nil, fmt.Errorf("ports %q: got %q, want a number of 1-65535 or two with a dash, the smaller first",
				text, part)
		}
		ranges = append(ranges, r)
	}
	return ranges, nil
}

// number is 0 for what is no port.
func number(text string) int {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 16)
	if err != nil {
		return 0
	}
	return int(n)
}

// String prints what ParseRanges reads.
func (r portRange) String() string {
	if r.From == r.To {
		return strconv.Itoa(r.From)
	}
	return strconv.Itoa(r.From) + "-" + strconv.Itoa(r.To)
}

// String prints what ParseRanges reads.
func (rs Ranges) String() string {
	parts := make([]string, len(rs))
	for i, r := range rs {
		parts[i] = r.String()
	}
	return strings.Join(parts, ",")
}

// Contains tells whether port lies in one of the ranges.
func (rs Ranges) Contains(port int) bool {
	return slices.ContainsFunc(rs, func(r portRange) bool { return r.From <= port && port <= r.To })
}

// numbers are the ports of rs, each once, in the given order.
func (rs Ranges) numbers() []int {
	var all []int
	seen := map[int]bool{}
	for _, r := range rs {
		for p := r.From; p <= r.To; p++ {
			if !seen[p] {
				seen[p] = true
				all = append(all, p)
			}
		}
	}
	return all
}

// Without returns rs less the ports of others.
func (rs Ranges) Without(others Ranges) Ranges {
	left := slices.Clone(rs)
	for _, o := range others {
		var next Ranges
		for _, r := range left {
			if o.To < r.From || r.To < o.From {
				next = append(next, r)
				continue
			}
			if r.From < o.From {
				next = append(next, portRange{r.From, o.From - 1})
			}
			if o.To < r.To {
				next = append(next, portRange{o.To + 1, r.To})
			}
		}
		left = next
	}
	return left
}
