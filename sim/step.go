package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Step is the behaviour towards one request. The zero Step is a healthy answer.
//
// Its text form is described in the package comment; it marshals as that text.
type Step struct {
	Fault      string        // a name of [Faults]; empty is "ok"
	Delay      time.Duration // argument of late, slow, accepted and drip; zero is their default
	Status     int           // argument of status; zero is 500
	Bytes      int64         // argument of huge; zero is endless
	RetryAfter time.Duration // sent as Retry-After in whole seconds, rounded up; zero sends none
	Code       string        // the error code in the answer; empty is the usual one for the status
	Executed   bool          // with status: do the work all the same
	Lookup     bool          // meant for GET requests
	Ends       End           // how accepted work ends
	Deaf       bool          // accepted work goes on after a cancel, which is acknowledged all the same
	Mind       *Mind         // how the model thinks of this request, its lies in place of the model's own; nil: as ever
}

// Parse reads the text form of a step. Empty text is the zero Step. It fails on
// unknown names, on arguments a fault does not take and on values out of range.
func Parse(text string) (Step, error) {
	var s Step
	for i, part := range strings.Split(text, ",") {
		name, value, given := cutAssignment(part)
		if i == 0 {
			if err := s.setFault(name, value, given); err != nil {
				return Step{}, err
			}
			continue
		}
		if err := s.setModifier(name, value, given); err != nil {
			return Step{}, err
		}
	}
	return s, nil
}

// MustParse reads several steps, for scripts written in the source. It panics
// where [Parse] fails.
func MustParse(texts ...string) []Step {
	steps := make([]Step, len(texts))
	for i, text := range texts {
		step, err := Parse(text)
		if err != nil {
			panic(err)
		}
		steps[i] = step
	}
	return steps
}

// String returns the text form of s. Parse reads it back.
func (s Step) String() string {
	fault, known := faultNamed(s.Fault)
	if !known {
		return s.Fault
	}
	parts := []string{fault.Name + s.argument(fault.Argument)}
	if s.RetryAfter != 0 {
		parts = append(parts, "retry_after="+s.RetryAfter.String())
	}
	if s.Code != "" {
		parts = append(parts, "code="+s.Code)
	}
	if s.Executed {
		parts = append(parts, "executed")
	}
	if s.Lookup {
		parts = append(parts, "lookup")
	}
	if s.Ends != EndsCompleted {
		parts = append(parts, "ends="+string(s.Ends))
	}
	if s.Deaf {
		parts = append(parts, "deaf")
	}
	if s.Mind != nil {
		if mind := s.Mind.String(); fault.Name == "ok" && len(parts) == 1 {
			return mind
		} else {
			parts = append(parts, mind)
		}
	}
	return strings.Join(parts, ",")
}

// MarshalText returns the text form. It never fails.
func (s Step) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the text form, and fails as [Parse] does.
func (s *Step) UnmarshalText(text []byte) error {
	step, err := Parse(string(text))
	if err != nil {
		return err
	}
	*s = step
	return nil
}

// argument renders the fault's own argument, or nothing where it is the default.
func (s Step) argument(kind Argument) string {
	switch {
	case kind == ArgDuration && s.Delay != 0:
		return "=" + s.Delay.String()
	case kind == ArgStatus && s.Status != 0:
		return "=" + strconv.Itoa(s.Status)
	case kind == ArgBytes && s.Bytes != 0:
		return "=" + strconv.FormatInt(s.Bytes, 10)
	}
	return ""
}

func (s *Step) setFault(name, value string, given bool) error {
	fault, known := faultNamed(name)
	if !known {
		if minded, err := s.setMind(name, value, given); minded {
			return err
		}
		return fmt.Errorf("sim: unknown fault %q; docs/sim.md and /sim/faults list them", name)
	}
	if name != "" {
		s.Fault = name
	}
	if !given {
		return nil
	}
	var err error
	switch fault.Argument {
	case ArgDuration:
		s.Delay, err = parseDuration(value)
	case ArgStatus:
		s.Status, err = parseStatus(value)
	case ArgBytes:
		s.Bytes, err = parseBytes(value)
	default:
		err = fmt.Errorf("it takes no argument, got %q", value)
	}
	if err != nil {
		return fmt.Errorf("sim: fault %q: %w", fault.Name, err)
	}
	return nil
}

// setMind reads a lie or a modifier of minds. False: it is neither.
func (s *Step) setMind(name, value string, given bool) (minded bool, err error) {
	var mind Mind
	if s.Mind != nil {
		mind = *s.Mind
	}
	minded, err = mind.set(name, value, given)
	if err != nil {
		return minded, fmt.Errorf("sim: %q: %w", name, err)
	}
	if minded {
		s.Mind = &mind
	}
	return minded, nil
}

func (s *Step) setModifier(name, value string, given bool) error {
	if minded, err := s.setMind(name, value, given); minded || err != nil {
		return err
	}
	var err error
	switch {
	case name == "retry_after" && given:
		s.RetryAfter, err = parseDuration(value)
	case name == "code" && given:
		s.Code = value
	case name == "executed" && !given:
		s.Executed = true
	case name == "lookup" && !given:
		s.Lookup = true
	case name == "ends" && given:
		s.Ends, err = parseEnd(value)
	case name == "deaf" && !given:
		s.Deaf = true
	default:
		err = fmt.Errorf("not a lie and not one of retry_after=, code=, executed, lookup, ends=, deaf, honest, seed=, window=, flaky")
	}
	if err != nil {
		return fmt.Errorf("sim: modifier %q: %w", name, err)
	}
	return nil
}

// cutAssignment splits "name=value" or "name:value".
func cutAssignment(part string) (name, value string, given bool) {
	part = strings.TrimSpace(part)
	i := strings.IndexAny(part, "=:")
	if i < 0 {
		return part, "", false
	}
	return strings.TrimSpace(part[:i]), strings.TrimSpace(part[i+1:]), true
}

func parseDuration(value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err == nil && d <= 0 {
		err = fmt.Errorf("a duration is more than zero, got %s", value)
	}
	return d, err
}

func parseStatus(value string) (int, error) {
	status, err := strconv.Atoi(value)
	if err != nil || status < 200 || status > 599 {
		return 0, fmt.Errorf("a status is 200 to 599, got %q", value)
	}
	return status, nil
}

func parseBytes(value string) (int64, error) {
	digits, unit := value, int64(1)
	for _, u := range []struct {
		suffix string
		bytes  int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}} {
		if rest, found := strings.CutSuffix(value, u.suffix); found {
			digits, unit = rest, u.bytes
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > 1<<40/unit {
		return 0, fmt.Errorf("a size is like 1000, 64KiB or 2MiB, at most 1 TiB, got %q", value)
	}
	return n * unit, nil
}
