package content

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

var (
	className  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_<][A-Za-z0-9_>]*){0,31}$`)
	camelCase  = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,63}$`)
	longNumber = regexp.MustCompile(`[0-9]{5}`)
)

// TypeName returns the name of a class, or "" if the text is none.
func TypeName(text string) string {
	if len(text) <= 200 && className.MatchString(text) {
		return text
	}
	return ""
}

// ErrorType returns the name of an error's class, or "" if the text has not the
// form of one: a capital letter and no longer number in its last part, or words
// that errors are made of.
func ErrorType(text string) string {
	if TypeName(text) == "" || longNumber.MatchString(text) {
		return ""
	}
	name := strings.TrimLeft(text[strings.LastIndexByte(text, '.')+1:], "_")
	if camelCase.MatchString(name) || vocabulary[strings.ToLower(name)] {
		return text
	}
	for word := range strings.SplitSeq(strings.ToLower(name), "_") {
		if !vocabulary[word] {
			return ""
		}
	}
	return text
}

// What stands in a template for a word and for a number that was withheld.
const (
	wordMark   = "<w>"
	numberMark = "<n>"
)

const maxTemplate = 512

// Template returns what of an error's message is the program's own: the words
// that errors of Python, its libraries and GPUs are made of. Any other word,
// and any number, is replaced. At most the first 512 bytes are looked at.
func Template(message string) string {
	message = message[:min(len(message), maxTemplate)]
	var out []string
	last := ""
	put := func(piece string) {
		// What was withheld has no length.
		if (piece == wordMark || piece == numberMark) && last == piece {
			return
		}
		if piece == " " && (last == " " || last == "") {
			return
		}
		out = append(out, piece)
		last = piece
	}
	for i := 0; i < len(message); {
		c := message[i]
		switch {
		case isWord(c):
			end := i + 1
			for end < len(message) && isWord(message[end]) {
				end++
			}
			word := message[i:end]
			switch {
			case vocabulary[strings.ToLower(word)]:
				put(word)
			case strings.Trim(word, "0123456789") == "" || isShape(word):
				put(numberMark)
			default:
				put(wordMark)
			}
			i = end
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			put(" ")
			i++
		case strings.IndexByte(punctuation, c) >= 0:
			put(string(c))
			i++
		default:
			_, size := utf8.DecodeRuneInString(message[i:])
			put(wordMark)
			i += size
		}
	}
	return strings.TrimSpace(collapse(strings.Join(out, "")))
}

const punctuation = `.,:;()[]{}'"=<>/*+-!?|%&`

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

// isShape recognizes 32x15.
func isShape(word string) bool {
	return strings.Trim(word, "0123456789x") == "" && word[0] != 'x'
}

// collapse makes one of what was withheld in a row: how many words a text had
// says something about it.
func collapse(s string) string {
	for _, mark := range [...]string{wordMark, numberMark} {
		for _, separator := range [...]string{" ", ", ", ",", ".", "-", "_", ":", "/"} {
			pair := mark + separator + mark
			for strings.Contains(s, pair) {
				s = strings.ReplaceAll(s, pair, mark)
			}
		}
	}
	return s
}

// vocabulary holds the words of errors, in lower case.
var vocabulary = Words(`
a about above after all allocate allocated allocation allocator already also although an and another any are argument
arguments array arrays as assertion assert assigned at attempt attempted attribute available axis backend backward bad
base be because been before being below between bias blank bool both bound bounds broadcast buffer but by byte bytes call
callable called caller can cannot capacity channel channels checkpoint child class close closed closing code codec column
columns compatible complex compute connection constant contains context contiguous conv convert converted convolution copy
core corrupt corrupted could count create created cublas cuda cudnn data dataloader dataset dataclass deadline decode
default defined delimiter denied depth descriptor desired destroy detected device devices dict dictionary different
dimension dimensional dimensionality dimensions directory disk divide division do does doesn domain double down driver
dtype dtypes duplicate during each either element elements else embedding empty encode encountered end endpoint enough
environment equal error errors escape exceed exceeded exceeds exception exceptions execute executing execution exist
exists exit exited expect expected expecting expects expired extra fail failed failing fails failure false fatal feature
features few file finite first flag float floating for forbidden format forward found free from function further gather
generator get given global gpu gpus grad gradient gradients graph greater group half handle handled has hash hashable have
header height host i identity if ignored illegal implemented implicit import importing in incompatible inconsistent index
indices infinite infinity initialize initialized inner inplace input inputs inside install installed instance instead int
integer interface internal interrupted invalid io is issue item items iter iterable iteration iterator its itself json
kernel key keys keyword kind label labels large larger last launch launched layer least len length less library limit line
list load loaded loading local lock long longer loss lost mat mat1 mat2 match matching math matrix max maximum may
mean memory message method millisecond milliseconds min minimum mismatch missing mode model module modules more most
multiple multiplied multiply must name named names nan nccl negative nested network never new next no non none not nothing
null number numbers numerical numpy object objects of off offset on once one only open operand operands operation operator
operators or order other otherwise out output outputs outside overflow own packed padding parallel parameter parameters
parent parse pass passed path peer per permission place please point pointer pool port position positional positive
precision prefix present process processes property provided python pytorch quotes raise raised ran rank ranks rather
raw read ready real received recursion ref refused reference registered remote required requires reserved reset resource
response result return returned returns root row rows run running runtime same sample samples scalar scale scope
search second seconds self sequence server session set shape shapes should shut side signal signature single singular size
sizes small socket some source space sparse specified stack start state status step stop storage stream stride string strings
subscriptable such supported support sure syntax system take taken takes target temporary tensor tensors test text than that
the their them then there these they this thread through time timed timeout times to token tokens too torch total trace
training transport traceback tried true truncated truth try trying tuple two type types typeerror unable unallocated unavailable
undefined unexpected unhandled unhashable unicode unit unknown unpack unreachable unsigned unsupported until up usage use
used user using utf valid value values variable variables vector version view wait waiting was watchdog we weight weights were when
where whether which while width will with within without work worker workers would write written wrong xla you your zero
float16 float32 float64 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 complex64 complex128
kib mib gib tib kb mb gb tb attributeerror valueerror runtimeerror keyerror indexerror typeerror importerror oserror
nonetype str t s x cpu mps hip xpu rocm cuda_error cudnn_status cublas_status oom out_of_memory resource_exhausted
gloo mpi ucc nccl worknccl seqnum optype numelin numelout ms allreduce allgather broadcast reduce reduce_scatter barrier alltoall send recv`)
