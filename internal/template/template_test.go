package template_test

import (
	"strings"
	"testing"

	"github.com/ardanlabs/jinja"

	"github.com/onejob-dev/onejob/internal/template"
)

func TestASplitTemplateIsTheTemplateAgain(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]int{
		"": 0, "plain { text": 1, "a{{ b }}c": 3, "{%- if x -%}{{ '}}' }}{% endif %}": 3, "{# {{ no }} #}x": 2,
	} {
		segments, err := template.Scan(source)
		var again strings.Builder
		for _, s := range segments {
			again.WriteString(s.String())
		}
		if err != nil || len(segments) != want || again.String() != source {
			t.Errorf("%q: %+v, %v", source, segments, err)
		}
	}
	if _, err := template.Scan("{{ x"); err == nil {
		t.Error("a tag that is never closed is taken")
	}
}

func TestMembersKeepTheirOrder(t *testing.T) {
	t.Parallel()
	v, err := template.Value([]byte(`{"b":1,"a":[true,null,1.5],"c":"x"}`))
	if err != nil || strings.Join(v.AsDict().Keys, "") != "bac" {
		t.Errorf("%v, %v", v, err)
	}
	for _, bad := range []string{`{"a":1e999}`, `12345678901234567890`, `{`, `{} {}`} {
		if v, err := template.Value([]byte(bad)); err == nil {
			t.Errorf("%s: %v", bad, v)
		}
	}
}

func TestARangeHasAnEnd(t *testing.T) {
	t.Parallel()
	for _, args := range [][]jinja.Value{{jinja.NewInt(20_000)}, {jinja.NewString("x")}, {}, {jinja.NewInt(1), jinja.NewInt(2), jinja.NewInt(0)}} {
		if v, err := template.Range(args, nil); err == nil {
			t.Errorf("%v: %v", args, v)
		}
	}
	if v, err := template.Range([]jinja.Value{jinja.NewInt(5), jinja.NewInt(1), jinja.NewInt(-2)}, nil); err != nil || v.AsList().Len() != 2 {
		t.Errorf("%v, %v", v, err)
	}
}
