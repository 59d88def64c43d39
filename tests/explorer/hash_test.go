package explorer

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// A world's hash is that of its canonical form: times are relative to now, indexes of the registry are replaced by
// their order, texts for people are left out.

var seed = maphash.MakeSeed()

// hasher writes a value in its canonical form.
type hasher struct {
	out     []byte
	now     time.Time
	moment  time.Duration
	indexes []uint64
	at      []int // where they are in out
}

// oldest limits how far back a time is distinguished: no rule looks further.
const oldest = 160 * time.Second

func (w *world) hash() uint64 {
	x := hasher{now: w.Now, moment: w.moment(), out: make([]byte, 0, 16<<10)}
	x.fields(reflect.ValueOf(w).Elem())
	sorted := slices.Clone(x.indexes)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	for i, n := range x.indexes {
		rank, _ := slices.BinarySearch(sorted, n)
		binary.LittleEndian.PutUint64(x.out[x.at[i]:], uint64(rank))
	}
	return maphash.Bytes(seed, x.out)
}

var (
	timeType  = reflect.TypeFor[time.Time]()
	factsType = reflect.TypeFor[conductor.Facts]()
	// ignored are fields without influence.
	ignored = map[reflect.Type]map[string]bool{
		reflect.TypeFor[world]():               {"S": true, "Facts": true, "Now": true, "Bad": true, "Asked": true, "Calm": true, "Meets": true, "Apart": true},
		reflect.TypeFor[registry.Directive]():  {"At": true, "Why": true},
		reflect.TypeFor[registry.Verdict]():    {"At": true, "Cause": true},
		reflect.TypeFor[registry.AppRecord]():  {"Created": true},
		reflect.TypeFor[registry.MemberExit](): {"At": true, "Why": true},
		reflect.TypeFor[conductor.Snapshot]():  {"Now": true},
		reflect.TypeFor[conductor.Seal]():      {"Packed": true},
	}
	// moments are durations that count from a fixed moment.
	moments = map[reflect.Type]map[string]bool{
		reflect.TypeFor[conductor.Contact](): {"Heard": true, "Evidence": true, "Asked": true},
		reflect.TypeFor[process]():           {"End": true},
		reflect.TypeFor[agent]():             {"Mine": true},
		reflect.TypeFor[membership]():        {"Heard": true},
		reflect.TypeFor[joining]():           {"Born": true},
	}
)

// plan says how the fields of a struct are written.
type plan struct {
	fields []int
	moment []bool
}

var plans = map[reflect.Type]*plan{}

func planOf(t reflect.Type) *plan {
	if p := plans[t]; p != nil {
		return p
	}
	p := &plan{}
	for i := range t.NumField() {
		name := t.Field(i).Name
		if ignored[t][name] {
			continue
		}
		p.fields, p.moment = append(p.fields, i), append(p.moment, moments[t][name])
	}
	plans[t] = p
	return p
}

func (x *hasher) number(n int64) { x.out = binary.LittleEndian.AppendUint64(x.out, uint64(n)) }

func (x *hasher) text(s string) {
	x.number(int64(len(s)))
	x.out = append(x.out, s...)
}

func (x *hasher) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			x.number(-1)
			return
		}
		if v.Kind() == reflect.Interface {
			x.text(v.Elem().Type().Name())
		}
		x.walk(v.Elem())
	case reflect.Struct:
		x.fields(v)
	case reflect.Map:
		x.pairs(v)
	case reflect.Slice, reflect.Array:
		x.number(int64(v.Len()))
		for i := range v.Len() {
			x.walk(v.Index(i))
		}
	case reflect.String:
		x.text(v.String())
	case reflect.Bool:
		if v.Bool() {
			x.number(1)
		} else {
			x.number(0)
		}
	case reflect.Float64:
		x.number(int64(math.Float64bits(v.Float())))
	case reflect.Uint64:
		x.index(v.Uint())
	case reflect.Int, reflect.Int64:
		x.number(v.Int())
	default:
		panic("no hash for " + v.Type().String())
	}
}

func (x *hasher) index(n uint64) {
	x.indexes, x.at = append(x.indexes, n), append(x.at, len(x.out))
	x.number(0)
}

func (x *hasher) fields(v reflect.Value) {
	t := v.Type()
	switch t {
	case timeType:
		x.time(v)
		return
	case factsType:
		return
	}
	p := planOf(t)
	for k, i := range p.fields {
		if !p.moment[k] {
			x.walk(v.Field(i))
			continue
		}
		n := v.Field(i).Int()
		if n != 0 {
			n = max(n-int64(x.moment), -int64(oldest))
		}
		x.number(n)
	}
}

// time reads a time without its methods: the field may be unexported.
func (x *hasher) time(v reflect.Value) {
	wall, ext := v.Field(0).Uint(), v.Field(1).Int()
	if wall == 0 && ext == 0 {
		x.number(math.MinInt64)
		return
	}
	// no time here has a monotonic clock: ext is seconds since year 1, wall nanoseconds
	const toUnix = 62135596800
	at := time.Unix(ext-toUnix, int64(wall&(1<<30-1)))
	x.number(int64(max(at.Sub(x.now), -oldest)))
}

func (x *hasher) pairs(v reflect.Value) {
	type pair struct {
		k string
		v reflect.Value
	}
	var all []pair
	for it := v.MapRange(); it.Next(); {
		all = append(all, pair{keyText(it.Key()), it.Value()})
	}
	slices.SortFunc(all, func(a, b pair) int { return strings.Compare(a.k, b.k) })
	x.number(int64(len(all)))
	for _, p := range all {
		x.text(p.k)
		x.walk(p.v)
	}
}

func keyText(v reflect.Value) string {
	if v.Kind() == reflect.Struct { // registry.Instance
		return v.Field(0).String() + "-" + string(rune('0'+v.Field(1).Int()))
	}
	return v.String()
}
