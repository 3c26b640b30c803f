package browser

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// timeout is how long an action or a condition may take. It is far above what
// they need, so that a busy machine fails no test.
const timeout = 2 * time.Minute

// Browser is a running Chromium with a new profile.
type Browser struct {
	ctx context.Context
}

// Start starts Chromium. It ends with the test, and its profile is removed.
func Start(tb testing.TB) *Browser {
	tb.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		tb.Fatal("chromium is missing; install it with: e2e/page/chromium.sh")
	}
	var output strings.Builder
	ctx, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		// The sandbox takes privileges that containers often do not have, and all
		// pages are the project's own.
		chromedp.NoSandbox,
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.CombinedOutput(&output),
	)...)
	ctx, cancel := chromedp.NewContext(ctx)
	tb.Cleanup(func() {
		// Waits for the end of the process and for the removal of its profile.
		err := chromedp.Cancel(ctx)
		cancel()
		stop()
		if err != nil {
			tb.Errorf("Chromium did not end cleanly: %v\n%s", err, output.String())
		}
	})
	if err := chromedp.Do(ctx); err != nil {
		tb.Fatalf("Chromium did not start: %v\n%s", err, output.String())
	}
	return &Browser{ctx: ctx}
}
