package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// benchOf is a run without servers.
func benchOf(t *testing.T) *bench {
	t.Helper()
	return &bench{services: &services{dir: t.TempDir()}, settings: settings{rounds: 2, length: time.Second}, progress: &progress{}}
}

// contestOf is a contest whose turns take no time.
func contestOf(entries ...contestant) contest {
	for i := range entries {
		entries[i].turn = func(context.Context, *services, time.Duration) (sample, error) { return sample{perSecond: 1}, nil }
	}
	return contest{name: "lives", title: "Lives", entries: func(settings) []contestant { return entries }}
}

func failingWith(err error) func(context.Context, *services) error {
	return func(context.Context, *services) error { return err }
}

func TestAPeerWhosePartsCannotBeHadIsLeftOutAndTheOthersAreMeasured(t *testing.T) {
	t.Parallel()

	lacking := &unobtainable{what: "it does not build", out: "go: downloading x v1\n# x\nx.go:1:2: no route to host\nand more\n", err: errors.New("exit status 1")}
	h, err := benchOf(t).hold(t.Context(), contestOf(contestant{name: "peer", prepare: failingWith(errors.Join(lacking, nil))}, contestant{name: "onejob"}))
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Rows) != 1 || h.Rows[0].Name != "onejob" || len(h.Rows[0].Rounds) != 2 {
		t.Errorf("rows %+v; want onejob's alone", h.Rows)
	}
	if want := []leftOut{{"peer", "it does not build: x.go:1:2: no route to host"}}; !slices.Equal(h.LeftOut, want) {
		t.Errorf("left out: %+v; want %+v", h.LeftOut, want)
	}
}

func TestAnyOtherErrorOfAPeerEndsTheRun(t *testing.T) {
	t.Parallel()

	wrong := errors.New("it answers 500")
	if _, err := benchOf(t).hold(t.Context(), contestOf(contestant{name: "peer", prepare: failingWith(wrong)})); !errors.Is(err, wrong) {
		t.Errorf("hold = %v; want %v", err, wrong)
	}
	c := contestOf(contestant{name: "peer"})
	c.entries = func(settings) []contestant {
		return []contestant{{name: "peer", turn: func(context.Context, *services, time.Duration) (sample, error) {
			return nil, &unobtainable{what: "onejob does not build", err: wrong}
		}}}
	}
	if _, err := benchOf(t).hold(t.Context(), c); !errors.Is(err, wrong) {
		t.Errorf("hold = %v; want %v, since the turn had begun", err, wrong)
	}
}

func TestAStoppedRunLeavesNobodyOut(t *testing.T) {
	t.Parallel()

	ctx, stop := context.WithCancel(t.Context())
	stop()
	lacking := &unobtainable{what: "it does not build", err: context.Canceled}
	if h, err := benchOf(t).hold(ctx, contestOf(contestant{name: "peer", prepare: failingWith(lacking)})); err == nil {
		t.Errorf("hold left out %+v; want an error", h.LeftOut)
	}
}

// The registry and the proxy are out of reach: what go and npm say then is said by
// programs in their place.
func TestPartsThatCannotBeFetchedAreTriedForOnce(t *testing.T) {
	bin, b := t.TempDir(), benchOf(t)
	for name, script := range map[string]string{
		"npm": "echo tried >> \"" + bin + "/tries\"; echo 'npm warn old'; echo 'npm error code ENOTFOUND' >&2; exit 1",
		"go":  "if [ \"$1\" = list ]; then echo '" + bin + "'; exit; fi; echo tried >> \"" + bin + "/tries\"; echo 'main.go:3:2: dial tcp: no route to host' >&2; exit 1",
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(bin, "bench/bifrost"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	for entry, want := range map[string]contestant{
		"its packages cannot be installed: npm error code ENOTFOUND":      {prepare: installed(contestant{}, "portkey").prepare},
		"bifrost does not build: main.go:3:2: dial tcp: no route to host": {prepare: bifrost(contestant{}).prepare},
	} {
		for range 2 {
			if got, err := b.services.missing(t.Context(), want); err != nil || got != entry {
				t.Errorf("missing = %q, %v; want %q", got, err, entry)
			}
		}
	}
	if tries, err := os.ReadFile(filepath.Join(bin, "tries")); err != nil || strings.Count(string(tries), "tried") != 2 {
		t.Errorf("%q, %v; want a try for each", tries, err)
	}
}

func TestPeersOfGatewaysGetTheirPartsBeforeTheirTurns(t *testing.T) {
	t.Parallel()

	for _, c := range []contest{gateways(), timeouts()} {
		for _, one := range c.entries(settings{}) {
			fetched := strings.HasPrefix(one.name, "Bifrost") || strings.HasPrefix(one.name, "Portkey")
			if fetched != (one.prepare != nil) {
				t.Errorf("%s, %s: prepared %t; want %t", c.name, one.name, one.prepare != nil, fetched)
			}
		}
	}
}
