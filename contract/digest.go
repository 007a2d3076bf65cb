package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/onejob-dev/onejob"
)

// digestVersion is that of the list of keys below the digest.
const digestVersion = "v1:"

// Digest names the verifiable part of a contract: "v1:" and the SHA-256, in hex,
// of its canonical JSON (RFC 8785, whole numbers exact). Evidence belongs to a
// digest. What it covers is a closed list: the fields of [File] whose tag says so,
// and for each case its id, input and what it expects. Thresholds, lifetimes, the
// maintainer, the order and the files of cases are not in it.
func Digest(c *Contract) (string, error) {
	verifiable := verifiablePart(reflect.ValueOf(c.File))
	cases, err := caseDigests(c.CaseList)
	if err != nil {
		return "", err
	}
	verifiable["cases"] = cases
	sum, err := canonicalSum(verifiable)
	return digestVersion + sum, err
}

// verifiablePart writes the fields of a struct that are in the digest, by their
// names in the file. What was left out and has no default is absent.
func verifiablePart(v reflect.Value) map[string]any {
	part := map[string]any{}
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		if tag.Get("digest") != "in" {
			continue
		}
		if value := verifiableValue(v.Field(i)); value != nil {
			part[tag.Get("yaml")] = value
		}
	}
	return part
}

func verifiableValue(v reflect.Value) any {
	switch x := v.Interface().(type) {
	case Schema:
		return rawOrNil(json.RawMessage(x))
	case Value:
		return rawOrNil(json.RawMessage(x))
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return verifiableValue(v.Elem())
	case reflect.Struct:
		return verifiablePart(v)
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = verifiableValue(v.Index(i))
		}
		return list
	case reflect.Map:
		object := map[string]any{}
		for _, key := range v.MapKeys() {
			object[key.String()] = verifiableValue(v.MapIndex(key))
		}
		return object
	}
	return v.Interface()
}

func rawOrNil(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	return raw
}

// caseDigests returns the digest of each case, sorted.
func caseDigests(cases []Case) ([]string, error) {
	digests := make([]string, 0, len(cases))
	for i := range cases {
		sum, err := cases[i].digest()
		if err != nil {
			return nil, fmt.Errorf("case %s: %w", cases[i].ID, err)
		}
		digests = append(digests, sum)
	}
	slices.Sort(digests)
	return digests, nil
}

func (c *Case) digest() (string, error) {
	content := map[string]any{"id": c.ID, "input": c.Input}
	if c.Expect != nil {
		content["expect"] = c.Expect
	}
	return canonicalSum(content)
}

// canonicalSum returns the SHA-256 of a value's canonical JSON, in hex.
func canonicalSum(v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	canonical, err := onejob.Canonical(raw)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}
