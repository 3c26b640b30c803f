package mlattr

import "strings"

var (
	slotCurrency = SlotOf(UsageCurrency)
	slotsOfCost  = [...]Slot{SlotOf(UsageCost), SlotOf(UsageInputCost), SlotOf(UsageOutputCost)}
)

// checkCurrency makes costs unreadable that are stated in another currency than
// US dollars: rates of exchange are not known.
func checkCurrency(f *Facts) {
	currency := f.TextAt(slotCurrency)
	if currency == "" || strings.EqualFold(currency, "USD") {
		return
	}
	for _, slot := range slotsOfCost {
		if cost := f.At(slot); cost != nil {
			cost.Unreadable = true
		}
	}
}
