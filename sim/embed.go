package sim

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/onejob-dev/onejob/sim/internal/schema"
)

// embeddings is the embeddings API of OpenAI, for models with a mind.
var embeddings = dialect{idPrefix: "embd-", check: plainCheck, success: plainSuccess, failure: openAIFailure, progress: plainProgress, ask: askEmbeddings, say: sayEmbeddings}

const onEmbeddings surface = "embeddings"

// The bounds on embeddings.
const (
	dimensions    = 64 // where none are asked for
	maxDimensions = 4096
	maxInputs     = 2048
	maxNumbers    = 1 << 19 // of one answer
)

// askEmbeddings reads a request for embeddings: its inputs are the turns.
func askEmbeddings(body []byte) (*question, *failure) {
	q, bad := parseQuestion(onEmbeddings, body)
	if bad != nil {
		return nil, bad
	}
	inputs := q.body.Get("input")
	if inputs.Is(schema.String) || inputs.Is(schema.Array) && len(inputs.Items) > 0 && inputs.Items[0].Is(schema.Number) {
		inputs = &schema.Value{Kind: schema.Array, Items: []*schema.Value{inputs}}
	}
	if !inputs.Is(schema.Array) || len(inputs.Items) == 0 || len(inputs.Items) > maxInputs {
		return nil, badRequest("input", fmt.Sprintf("input: 1 to %d texts are required", maxInputs))
	}
	for _, in := range inputs.Items {
		text := in.Str()
		if in.Is(schema.Array) { // of tokens
			text = in.String()
		}
		if text == "" {
			return nil, badRequest("input", "input: a text is not empty")
		}
		q.turns = append(q.turns, turn{role: "user", text: text, content: in})
	}
	if d := q.body.Get("dimensions"); d != nil {
		if q.limit = whole(d); q.limit == 0 || q.limit > maxDimensions {
			return nil, badRequest("dimensions", fmt.Sprintf("dimensions: 1 to %d, got %s", maxDimensions, d))
		}
	} else {
		q.limit = dimensions
	}
	if q.limit*len(q.turns) > maxNumbers {
		return nil, badRequest("input", fmt.Sprintf("input: at most %d numbers are answered at once; ask for fewer texts or dimensions", maxNumbers))
	}
	switch format := q.body.Get("encoding_format"); {
	case format == nil, format.Str() == "float", format.Str() == "base64":
		return q, nil
	default:
		return nil, badRequest("encoding_format", "encoding_format: float or base64")
	}
}

// sayEmbeddings writes a vector of length one for each input: the same for the same
// text and model.
func sayEmbeddings(t *thought, _ string, _ time.Time) answer {
	data, tokens := []any{}, 0
	for i, in := range t.q.turns {
		tokens += tokenCount(in.text)
		vector := vectorOf(t.q.model, in.text, t.q.limit)
		var embedding any = vector
		if t.q.body.Get("encoding_format").Str() == "base64" {
			raw := make([]byte, 0, 4*len(vector))
			for _, x := range vector {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
			}
			embedding = base64.StdEncoding.EncodeToString(raw)
		}
		data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": embedding})
	}
	a := jsonAnswer(http.StatusOK, map[string]any{
		"object": "list", "data": data, "model": t.model, "usage": map[string]int{"prompt_tokens": tokens, "total_tokens": tokens},
	})
	setOpenAIHeaders(a.Header)
	return a
}

func vectorOf(model, text string, dimensions int) []float32 {
	vector, sum := make([]float64, dimensions), 0.0
	for i := range vector {
		digest := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s", model, i, text))
		vector[i] = float64(int32(binary.BigEndian.Uint32(digest[:]))) / math.MaxInt32
		sum += vector[i] * vector[i]
	}
	unit := make([]float32, dimensions)
	for i, x := range vector {
		unit[i] = float32(x / math.Sqrt(sum))
	}
	return unit
}
