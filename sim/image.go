package sim

import (
	"encoding/json"
	"net/http"
	"strings"
)

// images is the images API of OpenAI: however many pictures are asked for, each of one
// grey dot.
var images = dialect{idPrefix: "img-", check: imagesCheck, success: imagesSuccess, failure: openAIFailure, progress: plainProgress}

const imagesPath = "/images/generations"

// maxImages is the most that one request makes.
const maxImages = 10

// greyDot is a PNG of one pixel.
const greyDot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="

type imagesQuestion struct {
	Model  string `json:"model"`
	Prompt string `json:"prompt"`
	N      *int   `json:"n"`
}

func (q *imagesQuestion) count() int {
	if q.N == nil {
		return 1
	}
	return *q.N
}

func imagesCheck(_ *http.Request, body []byte) string {
	var q imagesQuestion
	switch err := json.Unmarshal(body, &q); {
	case err != nil:
		return "the body is not valid JSON"
	case strings.TrimSpace(q.Prompt) == "":
		return "prompt: a text is required"
	case q.count() < 1 || q.count() > maxImages:
		return "n: 1 to 10"
	}
	return ""
}

func imagesSuccess(w work) answer {
	var q imagesQuestion
	_ = json.Unmarshal(w.Body, &q) // has been checked
	data := make([]map[string]string, q.count())
	for i := range data {
		data[i] = map[string]string{"b64_json": greyDot}
	}
	in, out := tokens(q.Prompt), 100*len(data)
	a := jsonAnswer(http.StatusOK, map[string]any{
		"created": w.Now.Unix(), "data": data,
		"usage": map[string]int{"input_tokens": in, "output_tokens": out, "total_tokens": in + out},
	})
	setOpenAIHeaders(a.Header)
	return a
}
