package sample

// queue is a first-in, first-out queue. The zero queue is ready to use.
type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) push(item T) { q.items = append(q.items, item) }

// peek returns the oldest item.
func (q *queue[T]) peek() (item T, ok bool) {
	if q.head == len(q.items) {
		return item, false
	}
	return q.items[q.head], true
}

// pop removes the oldest item.
func (q *queue[T]) pop() {
	var none T
	q.items[q.head] = none
	q.head++
	if q.head > len(q.items)/2 {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
}
