package tokenizer_test

import (
	"os"
	"strings"
	"testing"

	"github.com/onejob-dev/onejob/internal/tokenizer"
)

// prose is text of at least so many tokens.
func prose(b *testing.B, t tokenizer.Tokenizer, tokens int) string {
	b.Helper()
	page, err := os.ReadFile("../../docs/contracts.md")
	if err != nil {
		b.Fatal(err)
	}
	ids, err := t.Encode(string(page))
	if err != nil {
		b.Fatal(err)
	}
	return strings.Repeat(string(page), tokens/len(ids)+1)
}

func BenchmarkEncode20kTokens(b *testing.B) {
	o200k, err := tokenizer.Tiktoken("o200k_base")
	if err != nil {
		b.Fatal(err)
	}
	for name, t := range map[string]tokenizer.Tokenizer{"o200k_base": o200k, "bpe": small(b)} {
		b.Run(name, func(b *testing.B) {
			text := prose(b, t, 20_000)
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				if ids, err := t.Encode(text); err != nil || len(ids) < 20_000 {
					b.Fatal(len(ids), err)
				}
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	text := []byte(readSmall(b))
	for b.Loop() {
		if _, err := tokenizer.Load(text); err != nil {
			b.Fatal(err)
		}
	}
}
