package config

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/onejob-dev/onejob"
)

// secretBytes is how many random bytes a new instance secret has.
const secretBytes = 32

// ErrNoSecret says that a store needs an instance secret and has none.
var ErrNoSecret = errors.New("no instance secret")

// InstanceSecret returns the secret that fingerprints are made with.
//
// It is the configured one. Without one, a SQLite store has its own in a file
// beside it, which is made when the store is new. It returns [ErrNoSecret] for
// PostgreSQL, where every node must be given the same, and for a SQLite store
// that exists without its file: with a new secret every known key would answer
// as a conflict.
func (c *Config) InstanceSecret() (onejob.Secret, error) {
	if c.File.Secret.Value != "" {
		return c.File.Secret.Value, nil
	}
	store, err := ParseStore(c.Store.Value.Reveal())
	if err != nil {
		return "", err
	}
	if store.Postgres != "" {
		return "", fmt.Errorf("%w: with PostgreSQL every node needs the same one; set ONEJOB_SECRET or secret: in the configuration, for example to the output of openssl rand -hex 32", ErrNoSecret)
	}
	path := SecretPath(store.SQLite)
	secret, err := readSecretFile(path)
	if err == nil {
		return checkSecret(secret, path)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if info, err := os.Stat(store.SQLite); err == nil && info.Size() > 0 {
		return "", fmt.Errorf("%w: the store %s exists and %s does not; put that file back, or set ONEJOB_SECRET to what it held. With another secret every known key would answer as a conflict", ErrNoSecret, store.SQLite, path)
	}
	if err := makeSecretFile(path); err != nil {
		return "", err
	}
	if secret, err = readSecretFile(path); err != nil {
		return "", err
	}
	return checkSecret(secret, path)
}

// SecretPath returns where the secret of a SQLite store is kept.
func SecretPath(store string) string { return store + ".secret" }

func checkSecret(text, path string) (onejob.Secret, error) {
	if len(text) < minSecretBytes {
		return "", fmt.Errorf("the instance secret in %s has %d bytes; at least %d are needed", path, len(text), minSecretBytes)
	}
	return onejob.Secret(text), nil
}

// makeSecretFile writes a new secret, readable by its owner only, whole or not at
// all. A file that somebody else made meanwhile is left alone.
func makeSecretFile(path string) error {
	var secret [secretBytes]byte
	_, _ = rand.Read(secret[:])                                                   // never fails since Go 1.24
	temporary, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return folderFault(filepath.Dir(path), err)
	}
	defer func() { _ = os.Remove(temporary.Name()) }()
	_, err = temporary.WriteString(hex.EncodeToString(secret[:]) + "\n")
	err = errors.Join(err, temporary.Sync(), temporary.Close())
	if err == nil {
		err = os.Link(temporary.Name(), path)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("the instance secret cannot be written: %w", err)
	}
	return syncFolder(filepath.Dir(path))
}

// folderFault says why nothing can be written beside a store: the secret is the first
// thing that is.
func folderFault(folder string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the store's folder %s does not exist; make it, or name another store", folder)
	}
	var e *fs.PathError
	if errors.As(err, &e) {
		err = e.Err
	}
	return fmt.Errorf("the instance secret cannot be written in the store's folder %s: %w", folder, err)
}

// syncFolder makes a new name in a folder durable.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
