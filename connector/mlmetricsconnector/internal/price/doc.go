// Package price says what requests to models and GPUs cost, in US dollars. It
// reads a file of prices in the form of genai-prices, and rates the tokens of a
// request by it.
package price
