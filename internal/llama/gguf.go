package llama

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
)

// Shape of the model.
const (
	embedding   = 64
	feedForward = 128
	heads       = 4
	blocks      = 2
	window      = 4096 // tokens
	alignment   = 32   // of tensors, in bytes
)

// Types of values and tokens in a GGUF file, version 3
// (github.com/ggml-org/ggml/blob/master/docs/gguf.md).
const (
	ggufUint32  uint32 = 4
	ggufInt32   uint32 = 5
	ggufFloat32 uint32 = 6
	ggufBool    uint32 = 7
	ggufString  uint32 = 8
	ggufArray   uint32 = 9

	tokenUnknown int32 = 2
	tokenControl int32 = 3
	tokenByte    int32 = 6
)

// Template of the model's chat, ChatML. It leaves what a user wrote as it is, so that
// "<|im_end|>" in it ends the turn.
const Template = `{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`

// WriteModel writes a model of the llama architecture in GGUF, some 470 KB: two
// blocks, one token a byte and the control tokens of ChatML, weights by seed.
func WriteModel(w io.Writer, seed uint64) error {
	words, kinds := vocabulary()
	tensors := tensors(len(words))
	head, count := metadata(words, kinds)
	var infos, weights section
	random := rand.New(rand.NewPCG(seed, 0))
	for _, t := range tensors {
		infos.text(t.name)
		infos.put(uint32(len(t.dims)), t.dims, uint32(0), uint64(weights.Len())) // 0: 32-bit floats
		weights.put(t.values(random))
		weights.pad()
	}
	var file section
	file.WriteString("GGUF")
	file.put(uint32(3), uint64(len(tensors)), uint64(count))
	file.Write(head.Bytes())
	file.Write(infos.Bytes())
	file.pad()
	file.Write(weights.Bytes())
	_, err := w.Write(file.Bytes())
	return err
}

// vocabulary is one token for each byte, and those that steer.
func vocabulary() (words []string, kinds []int32) {
	add := func(word string, kind int32) { words, kinds = append(words, word), append(kinds, kind) }
	add("<unk>", tokenUnknown)
	add("<s>", tokenControl)
	add("</s>", tokenControl)
	for b := range 256 {
		add(fmt.Sprintf("<0x%02X>", b), tokenByte)
	}
	add("<|im_start|>", tokenControl)
	add("<|im_end|>", tokenControl)
	return words, kinds
}

func metadata(words []string, kinds []int32) (head section, count int) {
	add := func(name string, kind uint32, value any) {
		head.text(name)
		head.put(kind)
		head.value(value)
		count++
	}
	add("general.architecture", ggufString, "llama")
	add("general.name", ggufString, "random")
	for name, n := range map[string]int{
		"context_length": window, "embedding_length": embedding, "block_count": blocks, "feed_forward_length": feedForward,
		"attention.head_count": heads, "attention.head_count_kv": heads, "rope.dimension_count": embedding / heads, "vocab_size": len(words),
	} {
		add("llama."+name, ggufUint32, uint32(n))
	}
	add("llama.attention.layer_norm_rms_epsilon", ggufFloat32, float32(1e-5))
	add("tokenizer.ggml.model", ggufString, "llama")
	add("tokenizer.ggml.tokens", ggufArray, words)
	add("tokenizer.ggml.scores", ggufArray, make([]float32, len(words)))
	add("tokenizer.ggml.token_type", ggufArray, kinds)
	add("tokenizer.ggml.unknown_token_id", ggufUint32, uint32(0))
	add("tokenizer.ggml.bos_token_id", ggufUint32, uint32(1))
	add("tokenizer.ggml.eos_token_id", ggufUint32, uint32(len(words)-1))
	add("tokenizer.ggml.add_bos_token", ggufBool, true)
	add("tokenizer.ggml.add_space_prefix", ggufBool, false)
	add("tokenizer.chat_template", ggufString, Template)
	return head, count
}

// tensor has weights around zero, or, with one dimension, is a norm of ones.
type tensor struct {
	name string
	dims []uint64
}

func tensors(vocabulary int) []tensor {
	all := []tensor{
		{"token_embd.weight", []uint64{embedding, uint64(vocabulary)}},
		{"output_norm.weight", []uint64{embedding}},
		{"output.weight", []uint64{embedding, uint64(vocabulary)}},
	}
	for i := range blocks {
		add := func(name string, dims ...uint64) {
			all = append(all, tensor{fmt.Sprintf("blk.%d.%s.weight", i, name), dims})
		}
		add("attn_norm", embedding)
		for _, name := range []string{"attn_q", "attn_k", "attn_v", "attn_output"} {
			add(name, embedding, embedding)
		}
		add("ffn_norm", embedding)
		add("ffn_gate", embedding, feedForward)
		add("ffn_up", embedding, feedForward)
		add("ffn_down", feedForward, embedding)
	}
	return all
}

func (t tensor) values(random *rand.Rand) []float32 {
	n := uint64(1)
	for _, d := range t.dims {
		n *= d
	}
	values := make([]float32, n)
	for i := range values {
		values[i] = 1
		if len(t.dims) > 1 {
			values[i] = float32(random.NormFloat64() / math.Sqrt(embedding))
		}
	}
	return values
}

// section is a part of the file, little endian.
type section struct{ bytes.Buffer }

func (s *section) put(values ...any) {
	for _, v := range values {
		_ = binary.Write(s, binary.LittleEndian, v) // of fixed size, into memory
	}
}

func (s *section) text(text string) {
	s.put(uint64(len(text)))
	s.WriteString(text)
}

func (s *section) value(value any) {
	switch v := value.(type) {
	case string:
		s.text(v)
	case []string:
		s.put(ggufString, uint64(len(v)))
		for _, word := range v {
			s.text(word)
		}
	case []float32:
		s.put(ggufFloat32, uint64(len(v)), v)
	case []int32:
		s.put(ggufInt32, uint64(len(v)), v)
	default:
		s.put(v)
	}
}

func (s *section) pad() {
	for s.Len()%alignment != 0 {
		s.WriteByte(0)
	}
}
