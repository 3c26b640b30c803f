package nvmlsource

import "time"

// ask makes a call, turns a panic of the binding into a status, and reports the
// call's duration.
func ask[T any](name string, called func(call, status string, took time.Duration), question func() (T, status)) (T, status) {
	begin := time.Now()
	value, result := guard(question)
	if called != nil {
		called(name, string(result), time.Since(begin))
	}
	return value, result
}

// askStatus is ask for calls without a value.
func askStatus(name string, called func(call, status string, took time.Duration), question func() status) status {
	_, result := ask(name, called, func() (struct{}, status) { return struct{}{}, question() })
	return result
}
