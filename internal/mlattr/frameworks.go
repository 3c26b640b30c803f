package mlattr

var frameworks = []string{"torch", "numpy", "jax", "tensorflow", "transformers", "vllm", "nccl"}

// Frameworks returns the packages of machine learning whose versions
// matter to a failure. The caller must not change it.
func Frameworks() []string { return frameworks }
