package tokenizer

import (
	"container/heap"
	"fmt"
)

// model is a byte-level BPE: bytes, and which two parts become one, the earlier rank
// first.
type model struct {
	bytes        [256]int    // the token of each byte
	merges       map[pair]to // by the tokens that are merged
	whole        map[string]int
	texts        [][]byte // by token; nil: there is none
	ignoreMerges bool     // a word that is a token is one without merging
}

type pair struct{ left, right int }

type to struct{ rank, id int }

// part is a token in a word, linked to its neighbours. A merged one's length is 0.
type part struct {
	id, length     int
	previous, next int
}

// candidate is a merge that may be next. It is stale when its parts have changed.
type candidate struct {
	rank, at    int
	left, right int
	id          int
}

// queue is a heap of candidates: the earliest rank first, then from the left.
type queue []candidate

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].rank < q[j].rank || q[i].rank == q[j].rank && q[i].at < q[j].at
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(c any)   { *q = append(*q, c.(candidate)) }
func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

// word appends the tokens of one word, in time n log n of its length.
func (m *model) word(ids []int, word string) []int {
	if id, ok := m.whole[word]; ok && (m.ignoreMerges || len(word) == 1) {
		return append(ids, id)
	}
	parts := make([]part, len(word))
	for i := range len(word) {
		parts[i] = part{id: m.bytes[word[i]], length: 1, previous: i - 1, next: i + 1}
	}
	var q queue
	offer := func(left int) {
		right := parts[left].next
		if right >= len(parts) {
			return
		}
		if t, ok := m.merges[pair{parts[left].id, parts[right].id}]; ok {
			heap.Push(&q, candidate{rank: t.rank, at: left, left: parts[left].id, right: parts[right].id, id: t.id})
		}
	}
	for i := range parts {
		offer(i)
	}
	for len(q) > 0 {
		c := heap.Pop(&q).(candidate)
		left := &parts[c.at]
		if left.length == 0 || left.id != c.left || left.next >= len(parts) || parts[left.next].id != c.right {
			continue
		}
		right := &parts[left.next]
		left.id, left.length, left.next = c.id, left.length+right.length, right.next
		right.length, right.id = 0, -1
		if left.next < len(parts) {
			parts[left.next].previous = c.at
		}
		offer(c.at)
		if left.previous >= 0 {
			offer(left.previous)
		}
	}
	for i := 0; i < len(parts); i = parts[i].next {
		ids = append(ids, parts[i].id)
	}
	return ids
}

// decode appends the bytes of tokens.
func (m *model) decode(ids []int) (string, error) {
	var text []byte
	for _, id := range ids {
		if id < 0 || id >= len(m.texts) || m.texts[id] == nil {
			return "", fmt.Errorf("there is no token %d", id)
		}
		text = append(text, m.texts[id]...)
	}
	return string(text), nil
}

// byteLetters are the letters that a vocabulary writes bytes with: printable ones as
// they are, the others from U+0100 on.
func byteLetters() (letters [256]rune) {
	next := rune(256)
	for b := range 256 {
		switch {
		case b >= '!' && b <= '~', b >= 0xa1 && b <= 0xac, b >= 0xae:
			letters[b] = rune(b)
		default:
			letters[b] = next
			next++
		}
	}
	return letters
}
