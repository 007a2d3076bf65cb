package translate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// source is an image of the messages API.
type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type,omitempty"`
	Base64    string `json:"data,omitempty"`
	URL       string `json:"url,omitempty"`
}

// imageTypes are those that the messages API takes.
var imageTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

func chatImage(path string, v jsontext.Value) (source, error) {
	image, err := fields(path, v, "url", "detail")
	if err != nil {
		return source{}, err
	}
	if detail := image["detail"]; detail != nil && literal(detail) != "auto" {
		return source{}, refuse(path+".detail", noPlace)
	}
	url, err := text(path+".url", image["url"])
	if err != nil {
		return source{}, err
	}
	inline, isData := strings.CutPrefix(url, "data:")
	media, data, inBase64 := strings.Cut(inline, ";base64,")
	switch {
	case isData && inBase64 && slices.Contains(imageTypes, media):
		return source{Type: "base64", MediaType: media, Base64: data}, nil
	case isData:
		return source{}, refuse(path+".url", fmt.Sprintf("the other API takes %s in base64", strings.Join(imageTypes, ", ")))
	case strings.HasPrefix(url, "https://"), strings.HasPrefix(url, "http://"):
		return source{Type: "url", URL: url}, nil
	}
	return source{}, refuse(path+".url", "it is neither http nor data")
}

func (t *translation) addImage(c *content, path string, v jsontext.Value) error {
	m, err := t.cached(path, v, "type", "source")
	if err != nil {
		return err
	}
	url, err := imageURL(path+".source", m["source"])
	if err != nil {
		return err
	}
	return c.add(path, "image_url", "image_url", map[string]string{"url": url})
}

func imageURL(path string, v jsontext.Value) (string, error) {
	s, err := fields(path, v, "type", "media_type", "data", "url")
	if err != nil {
		return "", err
	}
	switch kind := literal(s["type"]); {
	case kind == "base64" && s["url"] == nil:
		media, data := literal(s["media_type"]), literal(s["data"])
		if !slices.Contains(imageTypes, media) || data == "" {
			return "", refuse(path+".media_type", noPlace)
		}
		return "data:" + media + ";base64," + data, nil
	case kind == "url" && s["media_type"] == nil && s["data"] == nil:
		return text(path+".url", s["url"])
	}
	return "", refuse(path+".type", noPlace)
}
