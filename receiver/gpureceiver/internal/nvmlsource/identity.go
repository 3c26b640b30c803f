package nvmlsource

import (
	"fmt"
	"math/bits"
)

// architectures are the names of GPU architectures by NVML's numbers.
var architectures = map[uint32]string{
	2: "kepler", 3: "maxwell", 4: "pascal", 5: "volta", 6: "turing",
	7: "ampere", 8: "ada", 9: "hopper", 10: "blackwell", 13: "rubin",
}

// architectureName is empty for one that is younger than this package.
func architectureName(number uint32) string {
	return architectures[number]
}

// cudaVersion writes NVML's number, such as 12080, as 12.8. It is empty for
// what is no version.
func cudaVersion(number int) string {
	if number < 1000 {
		return ""
	}
	return fmt.Sprintf("%d.%d", number/1000, number%1000/10)
}

// onlyNode returns the number of the only bit that is set in a set of NUMA
// nodes. It reports false where there is none or more than one.
func onlyNode(set []uint) (int, bool) {
	node, found := 0, false
	for i, word := range set {
		if word == 0 {
			continue
		}
		if found || bits.OnesCount(word) != 1 {
			return 0, false
		}
		node, found = i*bits.UintSize+bits.TrailingZeros(word), true
	}
	return node, found
}
