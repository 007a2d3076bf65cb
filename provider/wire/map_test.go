package wire_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob/provider/wire"
)

func TestAMapMovesMembersAndLeavesAllOtherBytes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, object, want string
		moves              map[string]string
		dropped            []string
	}{
		{"NoMap", `{ "a":1}`, `{ "a":1}`, nil, nil},
		{"NothingOfIt", "{ \"a\" : 1.0 }\n", "{ \"a\" : 1.0 }\n", map[string]string{"b": "c"}, nil},
		{"Renamed", "{ \"a\" : 1.0 ,\n\"b\":[ 2 ]}", "{ \"c\" : 1.0 ,\n\"b\":[ 2 ]}", map[string]string{"a": "c"}, nil},
		{"AnEscapedName", `{"\u0061":1}`, `{"c":1}`, map[string]string{"a": "c"}, nil},
		{"TwoChangePlaces", `{"a":1,"b":2}`, `{"b":1,"a":2}`, map[string]string{"a": "b", "b": "a"}, nil},
		{"TheFirstDropped", `{ "a":1, "b":2}`, `{ "b":2}`, map[string]string{"a": ""}, []string{"a"}},
		{"TheLastDropped", `{"b":2 , "a":1 }`, `{"b":2 }`, map[string]string{"a": ""}, []string{"a"}},
		{"TheMiddleDropped", `{"b":{"a":0}, "a":"},{" ,"c":3}`, `{"b":{"a":0} ,"c":3}`, map[string]string{"a": ""}, []string{"a"}},
		{"AllDropped", `{"b":2,"a":null}`, `{}`, map[string]string{"a": "", "b": ""}, []string{"a", "b"}},
		{"TheSameTwiceDropped", `{"a":1,"a":2,"c":3}`, `{"c":3}`, map[string]string{"a": ""}, []string{"a"}},
		{"Inside", `{"a":1,"c":3}`, `{"in":{"x":{"y":1}},"c":3}`, map[string]string{"a": "in.x.y"}, nil},
		{"InsideOfWhatIsThere", `{"in":{"z":0},"a":1}`, `{"in":{"y":1,"z":0}}`, map[string]string{"a": "in.y"}, nil},
		{"AnEmptyObject", `{}`, `{}`, map[string]string{"a": ""}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, dropped, err := wire.WithMap([]byte(c.object), c.moves)
			if err != nil || string(got) != c.want || !slices.Equal(dropped, c.dropped) {
				t.Errorf("%s under %v: %s, dropped %v, %v; want %s, dropped %v", c.object, c.moves, got, dropped, err, c.want, c.dropped)
			}
		})
	}
}

func TestAMapPutsNothingOverWhatIsThere(t *testing.T) {
	t.Parallel()
	for object, want := range map[string]string{
		`{"a":"secret","b":2}`:                `two members go to "b"`,
		`{"b":2,"a":1}`:                       `two members go to "b"`,
		`{"a":1,"a":2}`:                       `two members go to "b"`,
		`{"in":1,"c":"secret"}`:               `member "c": inside "in": not a JSON object`,
		`{"in":{"c":0},"c":"secret"}`:         `something is at "c" already`,
		`{"in":{"d":0},"in":{},"c":"secret"}`: `there twice`,
		`[]`:                                  "not a JSON object",
	} {
		got, _, err := wire.WithMap([]byte(object), map[string]string{"a": "b", "c": "in.c"})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") || got != nil {
			t.Errorf("%s: %s, %v; want %q", object, got, err, want)
		}
	}
}
