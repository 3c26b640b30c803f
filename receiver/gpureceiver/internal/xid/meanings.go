package xid

import "fmt"

// Of returns the meaning of a code. A code that is not in the table is an error
// of the device without an effect on its health.
func Of(code uint64) Meaning {
	meaning, found := meanings[code]
	if !found {
		return Meaning{Text: "The driver reported an error whose meaning is not known here", Severity: Device}
	}
	meaning.Known = true
	return meaning
}

// meanings is the table of the codes. Codes that NVIDIA's catalogue calls
// unused or reserved are not in it.
var meanings = map[uint64]Meaning{
	8:  {Text: "The GPU stopped working on a program's commands", Severity: Program},
	11: {Text: "A program's commands were malformed or corrupted", Severity: Program},
	12: {Text: "The driver failed while it handled an exception of the GPU", Severity: Device},
	13: {Text: "A kernel failed on the GPU, for example with an access out of bounds or an illegal instruction", Severity: Program},
	16: {Text: "The display engine hung", Severity: Device},
	18: {Text: "The GPU may not access the bus by itself (bus mastering is off)", Severity: Device, Effect: Degrades},
	19: {Text: "The display engine failed", Severity: Device},
	25: {Text: "A program's commands were invalid", Severity: Program},
	26: {Text: "The GPU's memory did not answer in time", Severity: Device, Effect: Degrades},
	27: {Text: "The video processor failed", Severity: Device},
	28: {Text: "The video processor failed", Severity: Device},
	29: {Text: "The video processor failed", Severity: Device},
	30: {Text: "A semaphore of the GPU was accessed wrongly", Severity: Device},
	31: {Text: "A program accessed an address that is not mapped in the GPU's memory (page fault)", Severity: Program},
	32: {Text: "The commands to the GPU were corrupted on their way, by the program, the bus or memory", Severity: Program},
	33: {Text: "A microcontroller of the GPU failed", Severity: Device, Effect: Degrades},
	37: {Text: "The GPU's firmware failed", Severity: Device, Effect: Degrades},
	38: {Text: "The driver's firmware failed", Severity: Device, Effect: Degrades},
	42: {Text: "The video image compositor failed", Severity: Program},
	43: {Text: "A program's use of the GPU was ended after an error of its own", Severity: Program},
	44: {Text: "The GPU failed while it changed from one program to another", Severity: Program},
	45: {Text: "A program's work was removed from the GPU, because it ended or another error came before", Severity: Program},
	46: {Text: "The GPU stopped working", Severity: Device, Effect: Fails},
	48: {Text: "ECC found a memory error that it could not correct", Severity: Device, Effect: Degrades},
	54: {Text: "The board's auxiliary power is not connected", Severity: Device, Effect: Degrades},
	56: {Text: "The display engine failed", Severity: Device},
	57: {Text: "The interface to the GPU's memory could not be programmed", Severity: Device, Effect: Degrades},
	58: {Text: "The interface to the GPU's memory is unstable", Severity: Device, Effect: Degrades},
	59: {Text: "The power microcontroller failed", Severity: Device, Effect: Degrades},
	60: {Text: "The security engine or the video processor failed", Severity: Device},
	61: {Text: "The power microcontroller stopped at a breakpoint", Severity: Device, Effect: Degrades},
	62: {Text: "The power microcontroller halted", Severity: Device, Effect: Fails},
	63: {Text: "Bad memory was recorded, to be retired or remapped", Severity: Device, Effect: Predicts},
	64: {Text: "Bad memory could not be retired or remapped", Severity: Device, Effect: Fails},
	66: {Text: "The driver made an illegal access", Severity: Device},
	67: {Text: "The driver made an illegal access", Severity: Device},
	69: {Text: "A program gave the GPU's engine a command that it does not have", Severity: Program},
	74: {Text: "An NVLink connection to another GPU or a switch failed", Severity: Device, Effect: Degrades},
	78: {Text: "A virtual GPU could not be started", Severity: Device},
	79: {Text: "The GPU has fallen off the bus: the host cannot reach it over PCIe", Severity: Gone, Effect: Fails},
	80: {Text: "The commands to the GPU were corrupted (checksum mismatch)", Severity: Program},
	81: {Text: "The VGA subsystem failed", Severity: Device},
	86: {Text: "The optical flow engine failed", Severity: Program},
	92: {Text: "ECC corrects memory errors at a high rate", Severity: Device, Effect: Predicts},
	93: {Text: "The board's InfoROM was erased more often than it is made for", Severity: Notice},
	94: {Text: "A memory error was contained to the program that used the memory, which has to be restarted", Severity: Device, Effect: Degrades},
	95: {Text: "A memory error was not contained, and may concern every program on the GPU", Severity: Device, Effect: Fails},

	106: {Text: "A test message came over the management bus", Severity: Notice},
	107: {Text: "A silent test message came over the management bus", Severity: Notice},
	108: {Text: "Another GPU used an address over NVLink that is not mapped here", Severity: Notice},
	109: {Text: "A change from one program to another did not end in time", Severity: Device, Effect: Fails},
	110: {Text: "The GPU found a security fault", Severity: Device, Effect: Fails},
	119: {Text: "The GPU's system processor (GSP) did not answer the driver in time", Severity: Device, Effect: Fails},
	120: {Text: "The GPU's system processor (GSP) failed", Severity: Device, Effect: Fails},
	121: {Text: "The chip-to-chip link had an error that was corrected", Severity: Notice},
	122: {Text: "The board's flash memory could not be read", Severity: Device},
	123: {Text: "The board's flash memory could not be written", Severity: Device},
	124: {Text: "The board's flash memory could not be erased", Severity: Device},
	125: {Text: "The file system of the board's InfoROM failed", Severity: Device},
	136: {Text: "An NVLink connection could not be trained", Severity: Device, Effect: Fails},
	137: {Text: "Another GPU's access over NVLink was not allowed", Severity: Notice},
	139: {Text: "Optical flow engine 1 failed", Severity: Program},
	140: {Text: "ECC found a memory error that nothing recovered", Severity: Device, Effect: Fails},
	141: {Text: "A direct path into the GPU failed", Severity: Notice},
	142: {Text: "Video encoder 3 failed", Severity: Device},
	143: {Text: "The GPU could not be initialised", Severity: Device, Effect: Fails},
	144: {Text: "An NVLink unit (SAW) failed", Severity: Device, Effect: Degrades},
	145: {Text: "An NVLink unit (RLW) failed", Severity: Device, Effect: Degrades},
	146: {Text: "An NVLink unit (TLW) failed", Severity: Device, Effect: Degrades},
	147: {Text: "An NVLink unit (TREX) failed", Severity: Device, Effect: Degrades},
	148: {Text: "An NVLink unit (NVLPW_CTRL) failed", Severity: Device, Effect: Degrades},
	149: {Text: "An NVLink unit (NETIR) failed, for example because a link is down", Severity: Device, Effect: Degrades},
	150: {Text: "An NVLink unit (MSE) failed", Severity: Device, Effect: Degrades},
	151: {Text: "The keys of confidential computing could not be changed", Severity: Device, Effect: Degrades},
	152: {Text: "The address translation of the deep learning accelerator failed", Severity: Device},
	153: {Text: "The deep learning accelerator did not answer in time", Severity: Device},
	154: {Text: "The driver changed what it asks for to recover the GPU, see nvidia.gpu.recovery.action", Severity: Notice},
	155: {Text: "The driver found an NVLink error", Severity: Device, Effect: Fails},
	156: {Text: "A part of the GPU was retired; a reset is needed", Severity: Device, Effect: Fails},
	157: {Text: "A part of the GPU could not be retired", Severity: Device},
	158: {Text: "The GPU did not answer in time and cannot go on", Severity: Device, Effect: Fails},
	159: {Text: "The coherent link to the host's processor had an error", Severity: Device},
	160: {Text: "A memory channel was retired", Severity: Device, Effect: Predicts},
	161: {Text: "A memory channel could not be retired", Severity: Device, Effect: Degrades},
	162: {Text: "The power smoothing hardware is in use again", Severity: Notice},
	163: {Text: "The power smoothing hardware is out of use", Severity: Notice},
	164: {Text: "The power smoothing hardware is near the end of its life", Severity: Notice},
	165: {Text: "The power smoothing hardware has reached the end of its life", Severity: Notice},
	166: {Text: "The encryption of NVLink failed", Severity: Device},
	167: {Text: "PCIe did not answer in time and cannot go on", Severity: Device, Effect: Degrades},
	168: {Text: "The GPU has less memory than it should", Severity: Device, Effect: Degrades},
	169: {Text: "A security processor of the GPU halted", Severity: Device, Effect: Degrades},
	170: {Text: "Secure NVLink had another error", Severity: Device},
	171: {Text: "An error of the GPU's DRAM could not be corrected, further to another error", Severity: Device},
	172: {Text: "An error of the GPU's SRAM could not be corrected, further to another error", Severity: Device},
}

// engines are the codes of the engines of a kind, by the engine's number. The failure of
// one is most likely its program's fault.
var engines = map[string][]uint64{
	"Copy engine":   {39, 40, 41, 70, 71, 72, 75, 76, 77, 85, 126, 127, 128, 129, 130, 131, 132, 133, 134, 135},
	"Video encoder": {47, 65, 73},
	"Video decoder": {68, 83, 84, 88, 89, 96, 97, 98},
	"JPEG engine":   {82, 99, 100, 101, 102, 103, 104, 105},
}

func init() {
	for kind, codes := range engines {
		for number, code := range codes {
			meanings[code] = Meaning{Text: fmt.Sprintf("%s %d failed", kind, number), Severity: Program}
		}
	}
}
