package config

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/onejob-dev/onejob"
)

// Redacted stands where a secret would be printed.
const Redacted = "[redacted]"

// Print writes the configuration as it is in effect, with where each setting
// comes from. Secrets are not in it; references to them are.
func (c *Config) Print(w io.Writer) error {
	var out strings.Builder
	p := &printer{out: &out, sources: c.sources}
	p.fields(reflect.ValueOf(&c.File).Elem(), "", 0)
	_, err := io.WriteString(w, out.String())
	return err
}

type printer struct {
	out     *strings.Builder
	sources map[string]string
}

// line writes one key with its value and the source of it.
func (p *printer) line(depth int, key, value, path string) {
	text := strings.Repeat("  ", depth) + key + ":"
	if value != "" {
		text += " " + value
	}
	source := p.sources[path]
	if source == "" {
		source = "default"
	}
	_, _ = fmt.Fprintf(p.out, "%-48s # %s\n", text, source)
}

// group writes a key with what is below it, and nothing when that is nothing.
func (p *printer) group(depth int, key string, below func(p *printer)) {
	var inner strings.Builder
	sub := &printer{out: &inner, sources: p.sources}
	below(sub)
	if inner.Len() > 0 {
		_, _ = fmt.Fprintf(p.out, "%s%s:\n%s", strings.Repeat("  ", depth), key, inner.String())
	}
}

func (p *printer) fields(v reflect.Value, path string, depth int) {
	for _, f := range fieldsOf(v.Type()) {
		if !f.later {
			p.value(v.Field(f.index), f.key, join(path, f.key), depth)
		}
	}
}

func (p *printer) value(v reflect.Value, key, path string, depth int) {
	switch value := v.Addr().Interface().(type) {
	case *Secret:
		if value.Written != "" {
			p.line(depth, key, quoteYAML(value.printed(path)), path)
		}
		return
	case *Duration:
		if *value != 0 {
			p.line(depth, key, value.String(), path)
		}
		return
	case *Lifetime:
		p.line(depth, key, value.String(), path)
		return
	case *Failover:
		p.line(depth, key, value.printed(), path)
		return
	case *Target:
		p.group(depth, key, func(p *printer) { p.fields(reflect.ValueOf(value.variant()).Elem(), path, depth+1) })
		return
	}
	p.plain(v, key, path, depth)
}

func (p *printer) plain(v reflect.Value, key, path string, depth int) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			p.value(v.Elem(), key, path, depth)
		}
	case reflect.Struct:
		p.group(depth, key, func(p *printer) { p.fields(v, path, depth+1) })
	case reflect.Map:
		p.mapping(v, key, path, depth)
	case reflect.Slice:
		p.slice(v, key, path, depth)
	case reflect.String:
		if v.String() != "" {
			p.line(depth, key, quoteYAML(v.String()), path)
		}
	default:
		if !v.IsZero() || p.sources[path] != "" || v.Kind() == reflect.Bool || v.Kind() == reflect.Float64 {
			p.line(depth, key, fmt.Sprint(v.Interface()), path)
		}
	}
}

func (p *printer) mapping(v reflect.Value, key, path string, depth int) {
	names := map[string]reflect.Value{}
	for _, name := range v.MapKeys() {
		names[name.String()] = v.MapIndex(name)
	}
	p.group(depth, key, func(p *printer) {
		for _, name := range sortedKeys(names) {
			item := reflect.New(v.Type().Elem()).Elem() // addressable
			item.Set(names[name])
			p.value(item, name, join(path, name), depth+1)
		}
	})
}

func (p *printer) slice(v reflect.Value, key, path string, depth int) {
	if v.Len() == 0 {
		return
	}
	if v.Type().Elem().Kind() != reflect.Struct {
		items := make([]string, v.Len())
		for i := range items {
			items[i] = quoteYAML(fmt.Sprint(v.Index(i).Interface())) // text, and durations in their own words
		}
		p.line(depth, key, "["+strings.Join(items, ", ")+"]", path)
		return
	}
	p.group(depth, key, func(p *printer) {
		for i := range v.Len() {
			_, _ = fmt.Fprintf(p.out, "%s-\n", strings.Repeat("  ", depth+1))
			p.fields(v.Index(i), path+"["+strconv.Itoa(i)+"]", depth+2)
		}
	})
}

// printed shows a reference, and nothing of a secret written out.
func (s *Secret) printed(path string) string {
	if path == "store" {
		if store, err := ParseStore(s.Value.Reveal()); err == nil {
			return store.String()
		}
		return Redacted
	}
	refs := reference.FindAllString(s.Written.Reveal(), -1)
	if len(refs) == 0 {
		return Redacted
	}
	return strings.Join(refs, " ")
}

func (f *Failover) printed() string {
	if f.Mode == onejob.FailoverDeclared {
		return "{declared: " + strconv.Quote(f.Why) + "}"
	}
	return string(f.Mode)
}

// quoteYAML quotes text that would not read back as itself.
func quoteYAML(s string) string {
	plain := s != "" && !strings.ContainsAny(s, " \t\n\r\"'#{}[],&*!|>%`\\") && s[0] != '@' && !strings.HasSuffix(s, ":") && !strings.HasPrefix(s, "-")
	if plain {
		if _, err := strconv.ParseFloat(s, 64); err != nil && s != "true" && s != "false" && s != "null" && s != "~" {
			return s
		}
	}
	return strconv.Quote(s)
}
