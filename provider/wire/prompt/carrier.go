package prompt

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/onejob-dev/onejob"
)

// Parameters in neutral words.
const (
	Cap         = "max_output_tokens"
	Schema      = "response_schema"
	Stream      = "stream"
	Temperature = "temperature"
	Tools       = "tools"
	Effort      = "reasoning_effort"
)

// Drop in place of a member says that the target does not carry the parameter.
const Drop = "drop"

// Parameters lists every name that a prompt may have.
func Parameters() []string {
	return []string{
		Cap, Temperature, Schema, Stream, "stop", "seed", "top_p", "top_k",
		"frequency_penalty", "presence_penalty", Effort, Tools,
	}
}

// Protocol is how one API carries parameters.
type Protocol struct {
	// Members by parameter: a path of members, dots between. One that is not here
	// is dropped.
	Members map[string]string
	// MaxTemperature that the API takes.
	MaxTemperature float64
	// Efforts are the reasoning efforts that the API takes. Nil: all.
	Efforts []string
	// ToolFunc writes one tool, and ChoiceFunc that this one is to be called.
	ToolFunc, ChoiceFunc func(Tool) any
}

// Options of a [Carrier].
type Options struct {
	// Map says where a target wants a parameter, in place of the protocol: a path of
	// members, dots between, or [Drop]. It holds for prompts, whose parameters have
	// neutral names, and for bodies of callers' own, whose members have their own: see
	// [Carrier.Moves]. A name that is no parameter of prompts is of bodies alone.
	Map map[string]string
	// MinTemperature is the least that the target takes.
	MinTemperature float64
	// Bounds says that the target's schemas take limits of numbers and lengths.
	// Otherwise they are taken off: the contract's checker holds them.
	Bounds bool
}

// Carrier carries parameters to one target. It is safe for concurrent use.
type Carrier struct {
	protocol Protocol
	members  map[string]string
	opts     Options
}

var (
	memberName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	memberPath = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)
)

// texts are members that a map may not take away: they say what is asked.
var texts = []string{"model", "messages", "input", "instructions", "system"}

// reserved are members that a map may not go to: they are the adapter's.
var reserved = []string{"model", "messages", "input", "instructions", "system", "background", "store"}

// NewCarrier makes the carrier of a target. All that is wrong is returned at once.
func NewCarrier(p Protocol, opts Options) (*Carrier, error) {
	c := &Carrier{protocol: p, members: maps.Clone(p.Members), opts: opts}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(opts.Map)) {
		path := opts.Map[name]
		first, _, _ := strings.Cut(path, ".")
		switch {
		case !memberName.MatchString(name) || slices.Contains(texts, name):
			errs = append(errs, fmt.Errorf("map: %q is no parameter", name))
		case name == Stream && path != Drop:
			errs = append(errs, errors.New("map: stream is never asked for, so that it goes nowhere"))
		case !memberPath.MatchString(path) || slices.Contains(reserved, first):
			errs = append(errs, fmt.Errorf("map: %s: %q is neither a member for parameters nor drop", name, path))
		case path == Drop:
			delete(c.members, name)
		case !slices.Contains(Parameters(), name): // of bodies alone
		default:
			c.members[name] = path
		}
	}
	if opts.MinTemperature < 0 || opts.MinTemperature > p.MaxTemperature {
		errs = append(errs, fmt.Errorf("min_temperature is 0 to %v", p.MaxTemperature))
	}
	return c, errors.Join(append(errs, c.collisions()...)...)
}

// Moves says where members of a caller's own body go, an empty path leaving them out. The
// member stream is not among them: whether there is one is the adapter's to decide.
func (c *Carrier) Moves() map[string]string {
	moves := map[string]string{}
	for name, path := range c.opts.Map {
		switch {
		case name == Stream:
		case path == Drop:
			moves[name] = ""
		default:
			moves[name] = path
		}
	}
	return moves
}

// bodiesMapped changes when a map says something else of the same body.
const bodiesMapped = 1

// MapDigest is what the map changes, for the digest of a target.
func (c *Carrier) MapDigest() any {
	if len(c.opts.Map) == 0 {
		return c.opts.Map
	}
	return []any{bodiesMapped, c.opts.Map}
}

// collisions are parameters that would go to one place.
func (c *Carrier) collisions() []error {
	var errs []error
	var b Body
	for _, name := range slices.Sorted(maps.Keys(c.members)) {
		if err := b.SetValue(c.members[name], name); err != nil {
			errs = append(errs, fmt.Errorf("map: %s: %w", name, err))
		}
	}
	return errs
}

// errNotCarried : nothing of the target's takes it.
var errNotCarried = errors.New("not carried")

// Carry puts the parameters of p into body, and returns how the prompt was rendered
// but for its bytes. A required parameter that is not carried is
// [onejob.ErrParamUnsupported].
func (c *Carrier) Carry(body *Body, p onejob.Prompt) (onejob.Rendered, error) {
	var r onejob.Rendered
	for _, param := range p.Params {
		err := c.carry(body, param, &r)
		switch {
		case errors.Is(err, errNotCarried) && param.Required:
			return onejob.Rendered{}, fmt.Errorf("%s: %w", param.Name, onejob.ErrParamUnsupported)
		case errors.Is(err, errNotCarried):
			r.Dropped = append(r.Dropped, param.Name)
		case err != nil:
			return onejob.Rendered{}, fmt.Errorf("%s: %w", param.Name, err)
		}
	}
	slices.Sort(r.Dropped)
	return r, nil
}

func (c *Carrier) carry(body *Body, param onejob.PromptParam, r *onejob.Rendered) error {
	path, carried := c.members[param.Name]
	value := param.Value
	switch param.Name {
	case Stream:
		return c.still(body, value)
	case Tools:
		return c.tools(body, path, value)
	}
	if !carried {
		return errNotCarried
	}
	var err error
	switch param.Name {
	case Temperature:
		value, err = c.temperature(value, r)
	case Schema:
		value, err = c.shaped(path, value)
	case Effort:
		if c.protocol.Efforts != nil && !slices.Contains(c.protocol.Efforts, strings.Trim(string(value), `"`)) {
			err = errNotCarried
		}
	}
	if err != nil {
		return err
	}
	return body.Set(path, value)
}

// still says that no stream is wanted, which is all that an adapter can carry.
func (c *Carrier) still(body *Body, value json.RawMessage) error {
	path, carried := c.members[Stream]
	switch {
	case string(value) != "false":
		return errNotCarried
	case !carried: // without the member no API streams
		return nil
	}
	return body.Set(path, value)
}

// temperature is the number that is sent for what a prompt asks.
func (c *Carrier) temperature(value json.RawMessage, r *onejob.Rendered) (json.RawMessage, error) {
	degrees := c.opts.MinTemperature
	if string(value) != onejob.TemperatureLow {
		asked, err := strconv.ParseFloat(string(value), 64)
		switch {
		case err != nil:
			return nil, errors.New("it is neither low nor a number")
		case asked < c.opts.MinTemperature || asked > c.protocol.MaxTemperature:
			return nil, errNotCarried
		}
		degrees = asked
	}
	r.Temperature = &degrees
	return encode(degrees)
}
