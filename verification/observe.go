package verification

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/onejob-dev/onejob"
)

// observations are what the provider said made the answers of a run.
type observations struct {
	answers int
	of      map[onejob.Observed]int
}

func (o *observations) add(seen onejob.Observed) {
	if o.of == nil {
		o.of = map[onejob.Observed]int{}
	}
	o.answers++
	o.of[seen]++
}

// values lists what was said of one member, sorted. Empty: nothing was.
func (o *observations) values(member func(onejob.Observed) string) []string {
	set := map[string]bool{}
	for seen := range o.of {
		if text := member(seen); text != "" {
			set[text] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

func (o *observations) models() []string {
	return o.values(func(s onejob.Observed) string { return s.Model })
}

func (o *observations) fingerprints() []string {
	return o.values(func(s onejob.Observed) string { return s.Fingerprint })
}

func (o *observations) upstreams() []string {
	return o.values(func(s onejob.Observed) string { return s.Upstream })
}

func (o *observations) builds() []string {
	return o.values(func(s onejob.Observed) string { return s.Build })
}

// baseline is what later answers are compared with. A fingerprint that changes within
// the run is no signal, and is left out.
func (o *observations) baseline() onejob.Observed {
	only := func(values []string) string {
		if len(values) != 1 {
			return ""
		}
		return values[0]
	}
	return onejob.Observed{Model: only(o.models()), Fingerprint: only(o.fingerprints()), Upstream: only(o.upstreams()), Build: only(o.builds())}
}

// mixed says what is not one thing, so that no certificate could say what it is about.
// Empty: nothing.
func (o *observations) mixed(t *Target) string {
	for _, m := range []struct {
		what   string
		values []string
	}{{"models", o.models()}, {"upstreams", o.upstreams()}, {"builds", o.builds()}} {
		if len(m.values) > 1 {
			return fmt.Sprintf("several %s answered: %s", m.what, strings.Join(m.values, ", "))
		}
	}
	if got := o.baseline(); t.Upstream != "" && got.Upstream != "" && got.Upstream != t.Upstream {
		return fmt.Sprintf("upstream %s answered, and %s was asked for", got.Upstream, t.Upstream)
	} else if t.Pinned && got.Model != "" && !sameModel(got.Model, t.Model) {
		return fmt.Sprintf("model %s answered, and %s is pinned", got.Model, t.Model)
	}
	return ""
}

// sameModel compares names, a vendor's prefix aside.
func sameModel(a, b string) bool {
	bare := func(name string) string { return strings.ToLower(name[strings.LastIndexByte(name, '/')+1:]) }
	return bare(a) == bare(b)
}

func (o *observations) String() string {
	show := func(values []string) string {
		if len(values) == 0 {
			return "-"
		}
		return strings.Join(values, ",")
	}
	return fmt.Sprintf("model=%s fingerprint={%s} upstream=%s build=%s", show(o.models()), show(o.fingerprints()), show(o.upstreams()), show(o.builds()))
}
