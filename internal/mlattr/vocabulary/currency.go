package vocabulary

import (
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

var (
	slotCurrency = SlotOf(mlattr.UsageCurrency)
	slotsOfCost  = [...]Slot{SlotOf(mlattr.UsageCost), SlotOf(mlattr.UsageInputCost), SlotOf(mlattr.UsageOutputCost)}
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
