package config

// GenerationPath returns the file that keeps the highest number of the store's
// generation that this node has seen. Empty: there is none.
func (c *Config) GenerationPath() (string, error) {
	if c.File.GenerationFile != "" {
		return c.File.GenerationFile, nil
	}
	store, err := ParseStore(c.Store.Value.Reveal())
	if err != nil || store.SQLite == "" {
		return "", err
	}
	return store.SQLite + ".generation", nil
}
