package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/onejob-dev/onejob"
	"github.com/onejob-dev/onejob/contract"
)

// Contract is the contract of a kind: read, without a fault, and compiled.
type Contract struct {
	*contract.Contract
	Checker *contract.Checker
}

// readContracts reads the contracts of all kinds. What is wrong with one is told
// where it stands in the contract's own file.
func (c *Config) readContracts(d *decoder) (faults []Fault) {
	c.Contracts = map[string]*Contract{}
	for _, name := range sortedKeys(c.File.Kinds) {
		kind := c.File.Kinds[name]
		at := "kinds." + name + ".contract"
		if kind.Contract == "" || d.faulty(at) {
			continue
		}
		read, err := c.readContract(kind.Contract)
		var wrong *contract.Error
		switch {
		case errors.As(err, &wrong):
			for _, f := range wrong.Faults {
				faults = append(faults, Fault{File: f.File, Line: f.Line, Column: f.Column, Path: f.Path, Message: f.Message})
			}
		case err != nil:
			d.fault(at, err.Error())
		default:
			c.Contracts[name] = read
			kind.agrees(d, name, read)
		}
	}
	return faults
}

// readContract reads one, whose path is relative to the configuration's folder.
func (c *Config) readContract(path string) (*Contract, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(c.Path), path)
	}
	path = filepath.Clean(path)
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("the contract cannot be read: %w", err)
	}
	if info.Size() > contract.MaxFileBytes {
		return nil, fmt.Errorf("the contract is larger than %d bytes", contract.MaxFileBytes)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the contract cannot be read: %w", err)
	}
	read, err := contract.Parse(filepath.ToSlash(path), text, os.DirFS(filepath.Dir(path)))
	if err != nil {
		return nil, err
	}
	checker, err := contract.Compile(read)
	if err != nil {
		return nil, err
	}
	for _, f := range contract.Lint(read).Findings {
		if f.Severity == contract.SeverityWarning {
			c.warn("%s", f.Fault.String())
		}
	}
	return &Contract{Contract: read, Checker: checker}, nil
}

// agrees holds a kind to what its contract says too.
func (k *Kind) agrees(d *decoder, name string, c *Contract) {
	path := "kinds." + name
	if c.Kind != name {
		d.fault(path+".contract", fmt.Sprintf("it is the contract of kind %q", c.Kind))
	}
	if k.Effect != onejob.Effect(c.SideEffects) {
		d.fault(path+".effect", fmt.Sprintf("it is %s, and the contract says side_effects: %s", k.Effect, c.SideEffects))
	}
	automatic := c.Failover.Automatic
	switch {
	case !c.Says("failover.automatic"):
	case automatic && k.Failover.Mode == onejob.FailoverNever:
		d.fault(path+".failover", "it is never, and the contract says failover.automatic: true")
	case !automatic && k.Failover.Mode == onejob.FailoverDeclared:
		d.fault(path+".failover", "it is declared, which lets a target take over by itself, and the contract says failover.automatic: false")
	}
}

// terms is what a job pins of its kind's contract.
func (c *Contract) terms() *onejob.ContractTerms {
	if c == nil {
		return nil
	}
	t := &onejob.ContractTerms{
		Digest: c.Checker.Digest(), Manual: !c.Failover.Automatic, Pair: c.Equivalence != nil, OnUncertified: c.Failover.OnUncertified,
	}
	if t.OnUncertified == "hold" {
		t.OnUncertified = ""
	}
	return t
}

// checkInput refuses an input that the contract does not take.
func (c *Contract) checkInput(input []byte) error {
	if found := c.Checker.ValidateInput(input); len(found) > 0 {
		return errors.New(found[0].String())
	}
	return nil
}
