package config

import (
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/onejob-dev/onejob"
)

// Duration is written with its unit, as in 500ms, 30s, 10m, 24h, 30d or 1h30m. A
// day has 24 hours.
type Duration time.Duration

const durationPattern = `^([0-9]+(\.[0-9]+)?(ms|s|m|h|d))+$`

var (
	durationForm = regexp.MustCompile(durationPattern)
	durationPart = regexp.MustCompile(`([0-9.]+)(ms|s|m|h|d)`)
)

var durationUnits = map[string]time.Duration{
	"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour,
}

func parseDuration(text string) (time.Duration, error) {
	if !durationForm.MatchString(text) {
		return 0, fmt.Errorf("%q is not a duration; write one like 500ms, 30s, 10m, 24h or 30d", text)
	}
	var sum float64
	for _, part := range durationPart.FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseFloat(part[1], 64)
		if err != nil {
			return 0, fmt.Errorf("%q is not a duration", text)
		}
		sum += n * float64(durationUnits[part[2]])
	}
	if sum > math.MaxInt64/2 {
		return 0, fmt.Errorf("%q is too long", text)
	}
	return time.Duration(sum), nil
}

func (d *Duration) parse(_ *decoder, text string) error {
	parsed, err := parseDuration(text)
	*d = Duration(parsed)
	return err
}

// String returns the shortest form that the file would take.
func (d Duration) String() string {
	const day = 24 * time.Hour
	t := time.Duration(d)
	if t >= 2*day && t%day == 0 {
		return strconv.Itoa(int(t/day)) + "d"
	}
	s := t.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Lifetime is a [Duration] or "forever", which is zero.
type Lifetime time.Duration

const forever = "forever"

func (l *Lifetime) parse(_ *decoder, text string) error {
	if text == forever {
		*l = 0
		return nil
	}
	parsed, err := parseDuration(text)
	if err == nil && parsed == 0 {
		err = fmt.Errorf("%s would delete at once; write a duration, or %s", text, forever)
	}
	if err != nil && parsed == 0 && !durationForm.MatchString(text) {
		err = fmt.Errorf("%w, or %s", err, forever)
	}
	*l = Lifetime(parsed)
	return err
}

// String returns the form that the file would take.
func (l Lifetime) String() string {
	if l == 0 {
		return forever
	}
	return Duration(l).String()
}

// Secret is a value that may refer to the environment or to files.
type Secret struct {
	// Written is the text of the file, references unresolved. It is a secret
	// itself when it holds none.
	Written onejob.Secret
	// Value is what it resolves to.
	Value onejob.Secret
}

// maxSecretFile bounds what is read of a secret's file.
const maxSecretFile = 64 << 10

var reference = regexp.MustCompile(`\$\{([^}]*)\}?`)

func (s *Secret) parse(d *decoder, text string) error {
	var errs []error
	value := reference.ReplaceAllStringFunc(text, func(ref string) string {
		resolved, err := d.resolve(ref)
		errs = append(errs, err)
		return resolved
	})
	*s = Secret{Written: onejob.Secret(text), Value: onejob.Secret(value)}
	return errors.Join(errs...)
}

// resolve returns what ${env:NAME} or ${file:/path} stands for.
func (d *decoder) resolve(ref string) (string, error) {
	inner, closed := strings.CutSuffix(strings.TrimPrefix(ref, "${"), "}")
	source, name, _ := strings.Cut(inner, ":")
	switch {
	case !closed:
		return "", errors.New("a reference starts with ${ and has no }")
	case source == "env" && name != "":
		value := d.getenv(name)
		if value == "" {
			return "", fmt.Errorf("the environment variable %s is not set", name)
		}
		return value, nil
	case source == "file" && name != "":
		return readSecretFile(name)
	}
	return "", errors.New("a reference is ${env:NAME} or ${file:/path}")
}

func readSecretFile(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("the secret's file cannot be read: %w", err)
	}
	if info.Size() > maxSecretFile {
		return "", fmt.Errorf("the secret's file %s is larger than %d bytes", path, maxSecretFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("the secret's file cannot be read: %w", err)
	}
	value := strings.TrimRight(string(text), "\r\n")
	if value == "" {
		return "", fmt.Errorf("the secret's file %s is empty", path)
	}
	return value, nil
}

// Failover says what lets another target take over: certified, never, or
// {declared: "<why these targets are equal>"}.
type Failover struct {
	Mode onejob.FailoverMode
	Why  string // with declared
}
