// Package stacks runs the set-ups that the documents of TorchTel and TaskWeaver
// give their users, with the built binary in place of the stock collector's
// image, and for the systems that document no set-up the least that their
// documents ask for. A client sends to the endpoint that is documented, and the
// documented targets and queries have to give data.
//
// A compose file's network is put on the loopback interface: each host:port that
// a file names is looked up in the compose file, and replaced by where that
// service listens here. What the compose file does not have, or does not
// publish, has no address, and the test fails. The rest of each file is used as
// it is.
//
// The files in testdata were written anew after the systems' documents; each
// says what of it is documented. The clients are simulated by mlgen; the
// programs of the folder examples are run by package clients.
package stacks
