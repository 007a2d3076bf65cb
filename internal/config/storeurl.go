package config

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// StoreURL says where jobs are kept. Exactly one member is set.
type StoreURL struct {
	SQLite   string // path of the file
	Postgres string // connection string, password included
}

// ParseStore reads sqlite:FILE or postgres://….
func ParseStore(text string) (StoreURL, error) {
	scheme, rest, found := strings.Cut(text, ":")
	switch {
	case found && scheme == "sqlite":
		path := strings.TrimPrefix(rest, "//")
		switch {
		case path == "" || strings.ContainsAny(path, "?\x00"):
			return StoreURL{}, errors.New("a SQLite store is sqlite:FILE, without options")
		case strings.HasPrefix(path, ":memory:"):
			return StoreURL{}, errors.New("a store in memory forgets keys and so runs jobs twice; for trying things out there is onejob dev")
		}
		return StoreURL{SQLite: path}, nil
	case found && (scheme == "postgres" || scheme == "postgresql"):
		if u, err := url.Parse(text); err != nil || !strings.HasPrefix(rest, "//") || u.Scheme == "" {
			return StoreURL{}, errors.New("a PostgreSQL store is postgres://user:password@host/database")
		}
		return StoreURL{Postgres: text}, nil
	case found && len(scheme) > 1:
		return StoreURL{}, fmt.Errorf("there is no store %q; it is sqlite:FILE or postgres://user:password@host/database", scheme)
	}
	return StoreURL{}, errors.New("it is sqlite:FILE or postgres://user:password@host/database")
}

// String returns the address without its password.
func (s StoreURL) String() string {
	if s.SQLite != "" {
		return "sqlite:" + s.SQLite
	}
	u, err := url.Parse(s.Postgres)
	if err != nil {
		return "postgres://[redacted]"
	}
	query := u.Query()
	for name := range query { // a password may also stand there
		if strings.Contains(strings.ToLower(name), "password") {
			query.Set(name, "redacted")
		}
	}
	u.RawQuery = query.Encode()
	return u.Redacted()
}
