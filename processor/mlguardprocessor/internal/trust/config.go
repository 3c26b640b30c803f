package trust

import (
	"fmt"
	"net/netip"
)

// The senders that have a name instead of addresses.
const (
	// Any is every sender.
	Any = "any"
	// Loopback is every process of this machine.
	Loopback = "loopback"
)

// Validate returns an error that names the first sender that is no address.
func Validate(senders []string) error {
	for i, sender := range senders {
		if _, err := networks(sender); err != nil {
			return fmt.Errorf("trusted_senders[%d] is %q; it must be an IP address, a network such as 10.0.0.0/8, %q or %q", i, sender, Loopback, Any)
		}
	}
	return nil
}

// networks returns the networks of a sender. Any has none.
func networks(sender string) ([]netip.Prefix, error) {
	switch sender {
	case Any:
		return nil, nil
	case Loopback:
		return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}, nil
	}
	if network, err := netip.ParsePrefix(sender); err == nil {
		return []netip.Prefix{network.Masked()}, nil
	}
	address, err := netip.ParseAddr(sender)
	if err != nil {
		return nil, err
	}
	address = address.Unmap().WithZone("")
	return []netip.Prefix{netip.PrefixFrom(address, address.BitLen())}, nil
}
